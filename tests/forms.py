"""One database with each form of the install box: what a user must do before a binary
works.
"""

import json
from pathlib import Path
from typing import Any

import yaml

from spack_cache_db.assembly.builds import build
from tests.histories import binary, lost_history
from tests.indexes import hash_of, index, node, record, write_layout3
from tests.trees import installed, write_tree

FORMS = ("signed", "unsigned", "split", "incomplete", "external", "gone", "modules")
"""The forms, and the packages that have them."""
SIGNED: dict[str, Any] = {"signed": True}
UNSIGNED: dict[str, Any] = {"signed": False}


def every_form(folder: Path) -> Path:
    """Build a database in which each package of `FORMS` has the form of its name."""
    history = lost_history(folder)
    sources = folder / "mirrors"
    pair = ["libone", "libtwo"]
    # A signed mirror with all that its binary needs, and the sizes.
    complete = [binary("signed", "3.1", pair), binary("libone"), binary("libtwo")]
    sizes = {record["spec"]["hash"]: 70_500_000 for record in complete}
    write_mirror(sources / "develop", complete, SIGNED, sizes)
    # An unsigned mirror, in object storage.
    settings = {"endpoint_url": "https://s3.example.org"}
    write_mirror(sources / "team", [binary("unsigned", "1.4")], UNSIGNED | settings)
    # Two mirrors that have all of it together.
    write_mirror(sources / "split-a", [binary("split", "2.2", ["low"])], SIGNED)
    write_mirror(sources / "split-b", [binary("low", "0.9")], SIGNED)
    # A mirror that lacks dependencies.
    needs = ["zlib-ng", "gcc-runtime", "pkgconf", "present"]
    lacking = [record(node(name), is_binary=False) for name in needs[:3]]
    partial = [binary("incomplete", "1.14.6", needs), binary("present"), *lacking]
    write_mirror(sources / "partial", partial, SIGNED)
    # An external below a binary.
    openmpi = node("openmpi", version="5.0.10")
    openmpi["external"] = {"path": "/opt/site/openmpi", "module": ["openmpi/5.0.10"]}
    on_external = [
        binary("external", "4.0", ["openmpi"]),
        record(openmpi, is_binary=False),
    ]
    write_mirror(sources / "site-mpi", on_external, SIGNED)
    # Two installations with modules of different names.
    installations = []
    modules = []
    for machine in ("casper", "derecho"):
        spec = node("modules", version="6.5")
        tree = write_tree(
            folder / "opt" / machine,
            [installed(spec, path=f"/glade/{machine}/modules")],
        )
        installations.append((machine, tree))
    modules.append(("derecho", write_modules(folder / "lmod", "modules/6.5-gcc")))
    file = folder / "forms.db"
    build([history, sources], file, installations=installations, modules=modules)
    return file


def write_mirror(
    folder: Path,
    records: list[Any],
    properties: dict[str, Any],
    sizes: dict[str, int] | None = None,
) -> None:
    """Write a mirror with its properties, as `fetch` writes it."""
    write_layout3(folder, {None: index(*records)})
    address = {"url": f"https://{folder.name}.example.org", **properties}
    (folder / "mirror.json").write_text(json.dumps(address))
    if sizes:
        (folder / "sizes.json").write_text(json.dumps(sizes))


def write_modules(folder: Path, name: str) -> Path:
    """Write Spack's list of modules, with one for the package `modules`."""
    folder.mkdir(parents=True)
    entry = {"path": f"/modules/{name}.lua", "use_name": name}
    path = folder / "module-index.yaml"
    path.write_text(yaml.safe_dump({"module_index": {hash_of("modules"): entry}}))
    return path
