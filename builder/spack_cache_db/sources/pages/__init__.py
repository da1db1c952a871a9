"""The pages of the build-cache site, one per package and release, of 2023 and later."""
