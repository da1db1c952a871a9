"""Compare our answers with a real Spack: what we call installable must install.

`python -m live_spack SPACK PACKAGES` pushes fake packages to mirrors of every kind,
builds databases from them, and types the printed commands in fresh instances of Spack.
It is a program like `attacks`, not a test in `tests/`, because it needs checkouts of
two other projects and takes several minutes.
"""
