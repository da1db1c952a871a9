"""Small sources of every kind, from which every table of a database has rows."""

import json
from pathlib import Path
from typing import Any

from tests.indexes import edge, hash_of, index, node, old_node, record
from tests.package_data import catalogued, described, listed, published
from tests.pagetexts import page, spec, spec_hash, write
from tests.trees import installed, write_tree

SKYLAKE = {
    "name": "skylake",
    "vendor": "GenuineIntel",
    "features": ["avx2"],
    "generation": 0,
    "parents": ["broadwell"],
}

MODULES = ".modules"
"""The folder with modules of the installation; they are no input unless they are
named.
"""


def write_every_kind(folder: Path) -> Path:
    """Write pages, indexes, an installation and package data, some of which contradict
    others.
    """
    # Pages: of one spec two that differ, one with a wrong number, and one with a fault.
    old_spec = spec(1, tarball="http://m", os="rhel8")
    new_spec = spec(1, size="7")
    ml_spec = spec(2, variants=["+x", "k=a,b"], stacks=["ml"])
    without_compiler = spec(3, compiler="none")
    without_version = spec(5, versions=[])
    write(
        folder / "pages",
        old=page("zlib", "develop-2025-01-05", [old_spec]),
        new=page("zlib", "develop", [new_spec, ml_spec]),
        wrong=page("zstd", "develop", [without_compiler], meta={"num_specs": 7}),
        other=page("zstd", "v0.22", [spec(3), spec(4, versions=["2.0"])]),
        refused=page("zstd", "v0.23", [without_version]),
    )

    # Indexes of two formats, which have an external, a spliced spec, and two records of
    # app that differ.
    glibc = record(node("glibc", external={"path": "/usr"}), is_binary=False)
    app = node(
        "app",
        edge("glibc", "link", virtuals=("libc",)),
        edge("gcc", "build", virtuals=("c",), direct=True),
        namespace="own",
        arch={"platform": "linux", "platform_os": "debian12", "target": SKYLAKE},
    )
    other_app = record(node("app", edge("glibc", "run"), version="2.0"))
    original = {"name": "spliced", "hash": hash_of("original")}
    spliced = record(node("spliced", build_spec=original))
    of_a_page = record(node("zlib", hash=spec_hash(1)))
    old = record(old_node("old", "6", "older"))
    indexes = {
        "develop/e4s": index(glibc, record(app, odd=1), spliced, of_a_page),
        "develop/ml": index(glibc, other_app),
        "v0.16/root": index(old, version="6"),
    }
    for path, data in indexes.items():
        (folder / path).mkdir(parents=True)
        (folder / path / "index.json").write_bytes(data)

    # An installation with a module.
    tool = installed(node("tool"), explicit=True)
    write_tree(folder / "opt", [tool, installed(node("lib"))])
    (folder / MODULES).mkdir()
    module = f"{hash_of('tool')}:\n    path: /m/tool/1.0\n    use_name: tool/1.0"
    (folder / MODULES / "module-index.yaml").write_text(f"module_index:\n  {module}\n")

    # Package data of three forms.
    (folder / "packages").mkdir()
    zlib = published(
        "zlib",
        "1.3",
        "1.2",
        versions_deprecated=[{"name": "1.0", "sha256": "x"}],
        variants=[
            {"name": "pic", "default": True, "description": "Position-independent code"}
        ],
        dependencies=[
            *described("gmake"),
            {"name": "zlib-api", "description": "The package zlib."},
        ],
    )
    of_repology = {
        "name": "catalogued",
        "maintainers": ["ada"],
        "licenses": ["MIT when @2:"],
        "categories": ["e4s"],
    }
    contents: dict[str, Any] = {
        "zlib": zlib,
        "gmake": published("gmake", "4.4", dependent_to=described("zlib")),
        "repology": catalogued(of_repology),
        "list": [listed("zlib", "1.4", "1.3"), listed("zstd", "1.5"), "gdbm"],
    }
    for name, content in contents.items():
        (folder / "packages" / f"{name}.json").write_text(json.dumps(content))
    return folder
