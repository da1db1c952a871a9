"""What people call things that Spack calls otherwise: systems, processors, compilers, variants."""

_FILLERS = """
a all an and any are available best binaries binary build buildcache built by cache cluster
compiled compiler compilers computer current do does find for from get give has have how i in
install installed is it latest list load look me module my need new newest of on os package
packages please platform prebuilt release runs search show spack spec stack support target that
the there to use using variant version versions want what which with

auf avec brauche comment dans das der des die du ein eine en est et für gibt ich installer
installiere installieren ist kann la le les mit mon oder pour quel sur und une veux von wie
"""
FILLERS = frozenset(_FILLERS.split())
"""Words that say nothing of what is looked for, in English, German and French."""
NEGATIONS = frozenset(("no", "not", "without", "ohne", "sans"))
"""Words before a variant that is to be off."""
TARGETS = {
    "amd64": "x86_64",
    "apple-silicon": "m1",
    "arm": "aarch64",
    "arm64": "aarch64",
    "avx512": "x86_64_v4",
    "epyc": "x86_64",
    "genoa": "zen4",
    "grace": "neoverse_v2",
    "graviton": "aarch64",
    "graviton2": "neoverse_n1",
    "graviton3": "neoverse_v1",
    "graviton4": "neoverse_v2",
    "milan": "zen3",
    "naples": "zen",
    "neoverse": "aarch64",
    "rome": "zen2",
    "ryzen": "x86_64",
    "turin": "zen5",
    "x64": "x86_64",
    "x86": "x86_64",
    "xeon": "x86_64",
}
"""What people call targets and families of archspec."""
PLATFORMS = {
    "apple": "darwin",
    "mac": "darwin",
    "macos": "darwin",
    "osx": "darwin",
    "windows": "windows",
}
SYSTEMS = {
    "alma": "almalinux",
    "amazon": "amzn",
    "bionic": "ubuntu18.04",
    "bookworm": "debian12",
    "bullseye": "debian11",
    "el": "rhel",
    "focal": "ubuntu20.04",
    "jammy": "ubuntu22.04",
    "noble": "ubuntu24.04",
    "oracle": "ol",
    "redhat": "rhel",
    "suse": "sles",
}
"""What people call operating systems: their names without a version, or one version."""
_KNOWN_SYSTEMS = "almalinux alpine amzn centos debian fedora ol opensuse rhel rocky sles ubuntu"
KNOWN_SYSTEMS = frozenset(_KNOWN_SYSTEMS.split())
"""How Spack calls operating systems, before their version (`distro.id()`)."""
COMPILERS = {
    "clang": "llvm",
    "clang++": "llvm",
    "flang": "llvm",
    "g++": "gcc",
    "gfortran": "gcc",
    "gnu": "gcc",
    "icx": "intel-oneapi-compilers",
    "ifx": "intel-oneapi-compilers",
}
"""What people call compilers, besides `LEGACY_COMPILERS`: most are their commands."""
VARIANTS = {"gpu": "cuda", "nvidia": "cuda", "parallel": "mpi", "radeon": "rocm"}
"""What people say of a package, for the variant of it."""
LANGUAGES = {"c++": "cxx"}
