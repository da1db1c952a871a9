"""build.sqlite_file: a build notes when it looked at its sources, also if they have
nothing new.
"""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

from spack_cache_db.assembly.builds import build
from spack_cache_db.inspect_file import inspect_path, looked_at
from spack_cache_db.query.open.info import info
from tests.assembly.test_history import night
from tests.commands import run
from tests.pagetexts import page, write

LONG_AGO = "2026-01-02T03:04:05+00:00"


def make_old(file: Path) -> None:
    """Let an inspect file say that the last look was long ago."""
    path = inspect_path(file)
    inspected = json.loads(path.read_text())
    inspected["spack-cache"]["build"]["looked"] = LONG_AGO
    path.write_text(json.dumps(inspected, indent=1))
    assert looked_at(file) == LONG_AGO


def test_each_build_notes_its_look_and_the_database_keeps_its_bytes(
    tmp_path: Path,
) -> None:
    """Built, built again with the same bytes, and skipped because nothing is new."""
    mirrors = night(tmp_path / "mirrors", "a")
    file = tmp_path / "x.db"
    begun = datetime.now(UTC).replace(microsecond=0)
    build([file, mirrors], file, snapshot="2026-11-24")
    before = file.read_bytes()

    for day in ("2026-11-25", "2026-11-26", None):
        make_old(file)
        sources = [file, mirrors] if day else [file]
        assert build(sources, file, snapshot=day).is_unchanged
        assert file.read_bytes() == before
        assert (
            begun <= datetime.fromisoformat(looked_at(file) or "") <= datetime.now(UTC)
        )
        assert {path.name for path in tmp_path.iterdir()} == {
            "x.db", "x.inspect.json", "mirrors"
        }  # fmt: skip


def test_a_build_with_faults_has_looked(tmp_path: Path) -> None:
    """What is good was read."""
    pages = write(tmp_path / "in", a=page(), b=b"---\n")
    build(pages, tmp_path / "x.db", keep_going=True)
    assert looked_at(tmp_path / "x.db")


def test_info_shows_both_days(tmp_path: Path) -> None:
    """That of the data, and that of the last look; a lone database has no second
    one.
    """
    mirrors = night(tmp_path / "mirrors", "a")
    file = tmp_path / "x.db"
    build([file, mirrors], file, snapshot="2026-11-24")
    make_old(file)
    text = run("info", file).stdout

    assert "snapshots     from 2026-11-24 to 2026-11-24\n" in text
    assert "last checked  2026-01-02, when a build read the sources\n" in text
    assert info(file)["looked_at"] == LONG_AGO

    copy = Path(shutil.copy(file, tmp_path / "copy.db"))
    assert info(copy)["looked_at"] is None
    assert "last checked" not in run("info", copy).stdout
    for broken in (
        "",
        "[]",
        '{"spack-cache": {"build": {"looked": "soon"}}}',
        "[" * 10_000,
    ):
        inspect_path(copy).write_text(broken)
        assert looked_at(copy) is None
