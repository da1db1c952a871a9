"""Reads Spack's environments: `spack.yaml`, `spack.lock` and lists of specs."""
