"""Where there are no processes and no module `resource`, answers and pages are the same."""

import json
import shutil
import sysconfig
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from spack_cache_db import cover, find
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import needed

pytestmark = pytest.mark.slow

SPEC = "py-mpi4py@4: target=:zen3 %gcc"
SPECS = ["py-mpi4py@4", "py-mpi4py@5"]
ENDLESS = "WITH RECURSIVE a(b) AS (SELECT 1 UNION ALL SELECT b + 1 FROM a) SELECT max(b) FROM a"
PAGES = (
    "/",
    "/packages",
    "/package/py-mpi4py",
    "/find?q=py-mpi4py@4:",
    f"/cover?q={SPECS[0]}",
    "/spack-cache/packages.json?_shape=array",
    "/spack-cache/builds?_facet=os",
)

PROGRAM = f"""
import json, os, sys
sys.path += [{str(ROOT / "builder")!r}, {sysconfig.get_path("purelib")!r}]
import spack_cache_db
os.chdir("FOLDER")
file = "spack-cache"
answers = {{
    "find": [each.as_dict() for each in spack_cache_db.find(file, {SPEC!r})],
    "cover": spack_cache_db.cover(file, {SPECS!r}, host="zen3").as_dict(),
}}
from datasette.app import Datasette
from datasette.plugins import pm
from spack_cache_db.site import plugin
if not pm.is_registered(plugin):
    pm.register(plugin, "spack-cache-db")
# As Datasette Lite starts it, whose files have no suffix.
options = {{"settings": {{"num_sql_threads": 0}}, "metadata": {{"about": "Lite"}}}}
site = Datasette([file], **options)
await site.invoke_startup()
for page in {PAGES!r}:
    answers[page] = (await site.client.get(page, follow_redirects=True)).status_code
endless = await site.client.get("/spack-cache.json?_shape=array&sql=" + {quote(ENDLESS)!r})
answers["endless"] = [endless.status_code, endless.text]
print(json.dumps(answers))
"""


def test_answers_and_pages_are_the_same(samples_file: Path, tmp_path: Path) -> None:
    """`find` and `cover` give the same answers, pages are shown, and statements end in time."""
    answers = _answers(samples_file, tmp_path)
    found = [each.as_dict() for each in find(samples_file, SPEC)]
    assert answers["find"] == json.loads(json.dumps(found)) != []
    covered = cover(samples_file, SPECS, host="zen3").as_dict()
    assert answers["cover"] == json.loads(json.dumps(covered))
    assert {page: answers[page] for page in PAGES} == dict.fromkeys(PAGES, 200)
    status, text = answers["endless"]
    assert status == 400
    assert "stopped after 1,000 ms" in text


def _answers(samples_file: Path, folder: Path) -> dict[str, Any]:
    """Return what the program prints in Pyodide, which npm installs as its lock says."""
    node, npm = needed("node", "nodejs"), needed("npm", "npm")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path(__file__).parent / name, folder)
    completed([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, check=True)
    data = folder / "data"
    data.mkdir()
    shutil.copy(samples_file, data / "spack-cache")
    (folder / "program.py").write_text(PROGRAM.replace("FOLDER", str(data)))
    packages = Path(sysconfig.get_path("purelib"))
    mounted = [data, ROOT, *([] if packages.is_relative_to(ROOT) else [packages])]
    script = Path(__file__).with_name("run.mjs")
    command = [node, script, folder / "program.py", folder / "node_modules", *mounted]
    done = completed(command, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
