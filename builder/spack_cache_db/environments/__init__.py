"""What Spack's environments ask for: `spack.yaml`, `spack.lock` and lists of specs.

Text in, frozen records out: no database and no network. `read` knows each kind by its content.
"""
