"""Nights of a facility: whatever happens, no snapshot that was written is lost without
a word.
"""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from spack_cache_db.assembly import file as sqlite_file
from spack_cache_db.assembly import replacement
from spack_cache_db.assembly.builds import build
from spack_cache_db.database_file import release_names
from spack_cache_db.errors import BuilderError
from spack_cache_db.releases import release_date
from tests.assembly.test_history import listed, night
from tests.builds import signalled_after
from tests.commands import run
from tests.examples import examples
from tests.indexes import hash_of
from tests.old_databases import OLD_DATABASES
from tests.processes import completed

WITH_SNAPSHOTS = [kind for kind in OLD_DATABASES if kind.has_snapshots]
MOMENTS = ("create", "insert", "finish", "require_intact", "inspect", "publish")
"""The steps of `assembly.file` and `assembly.replacement` after which a build is
killed.
"""

Snapshots = dict[str, frozenset[Any]]


def snapshots_in(file: Path) -> Snapshots:
    """Return the binaries of each snapshot of a database of this version."""
    found = listed(file)
    snapshots = {}
    # A snapshot of an empty mirror lists nothing.
    for name in release_names(file):
        if release_date(name):
            snapshots[name] = frozenset(row[0] for row in found.get(name, ()))
    return snapshots


def test_ten_nights_with_failures_an_upgrade_and_a_restore(tmp_path: Path) -> None:
    """Two nights of an older version, eight of this one; two fail, and one ends with a
    backup.
    """
    file = tmp_path / "x.db"
    mirrors = tmp_path / "mirrors"
    backup = tmp_path / "backup.db"
    # The first two nights were built by an older version of the program.
    WITH_SNAPSHOTS[-1].write(file)
    before = [name for name in release_names(file) if release_date(name)]
    assert len(before) >= 2

    def build_night(day: int, *names: str) -> tuple[str, ...]:
        if names:
            night(mirrors, *names)
        date = f"2026-11-{day:02}"
        return ("build", str(file), str(mirrors), "-o", str(file), "--snapshot", date)

    # Night 3: the first one with this version.
    result = run(*build_night(3, "a"))
    assert result.exit_code == 0, result.output
    expected = {"site-2026-11-03": {"a"}}
    # Night 4: the mirror's index is broken, with and without --keep-going.
    whole = file.read_bytes()
    files = {path: path.read_bytes() for path in mirrors.rglob("*") if path.is_file()}
    for path in files:
        path.write_bytes(b"{")
    assert run(*build_night(4)).exit_code == 1
    assert run(*build_night(4), "--keep-going").exit_code in (0, 1)
    assert {*before, *expected} <= listed(file).keys()
    file.write_bytes(whole)
    for path, data in files.items():
        path.write_bytes(data)
    # Night 5: the build is killed, and repeated.
    command = build_night(5, "a", "b")
    program = signalled_after("spack_cache_db.assembly.file.finish", "SIGKILL")
    assert (
        completed([sys.executable, "-c", program, *command]).returncode
        == -signal.SIGKILL
    )
    assert file.read_bytes() == whole
    assert run(*command).exit_code == 0
    expected["site-2026-11-05"] = {"a", "b"}
    shutil.copy(file, backup)
    # Nights 6 and 7, after which the file is damaged.
    for day, names in ((6, "b"), (7, "bc")):
        assert run(*build_night(day, *names)).exit_code == 0
    os.truncate(file, 30_000)
    # Night 8: nothing is built on a damaged file, until the backup is restored.
    command = build_night(8, "c")
    result = run(*command, "--keep-going")
    assert result.exit_code == 1
    assert "restore it from a copy" in result.stderr
    assert file.stat().st_size == 30_000
    shutil.copy(backup, tmp_path / "restored.db")
    (tmp_path / "restored.db").rename(file)
    assert run(*command).exit_code == 0
    expected["site-2026-11-08"] = {"c"}
    # Nights 9 and 10: one without news, and one with some.
    assert "unchanged" in run(*build_night(9)).stdout
    assert run(*build_night(10, "d")).exit_code == 0
    expected["site-2026-11-10"] = {"d"}
    found_snapshots = snapshots_in(file)
    assert set(found_snapshots) == {*before, *expected}
    for name, packages in expected.items():
        assert found_snapshots[name] == {hash_of(package) for package in packages}
    assert {path.name for path in tmp_path.iterdir()} == {
        "x.db", "x.inspect.json", "mirrors", "backup.db"
    }  # fmt: skip


class Nights(RuleBasedStateMachine):
    """A history that is built, upgraded, damaged, thinned and killed in any order.

    Attributes:
        written: the binaries of each snapshot that was written, unless a message named
            it since.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.file = self.folder / "x.db"
        self.mirrors = self.folder / "mirrors"
        self.written: Snapshots = {}
        self.day = 2

    def teardown(self) -> None:
        """Remove the files."""
        shutil.rmtree(self.folder)

    @initialize(
        kind=st.sampled_from([None, *WITH_SNAPSHOTS]),
        names=st.sets(st.sampled_from("ab")),
    )
    def begin(self, kind: Any, names: set[str]) -> None:
        """Begin with nothing, or with a database of an older version."""
        night(self.mirrors, *names)
        if kind is not None:
            kind.write(self.file)
            build(self.file, self.folder / "new.db")
            self.written = snapshots_in(self.folder / "new.db")
            assert self.written

    def _build(self, paths: list[Path], **options: Any) -> None:
        """Build, and note what is written, and what messages name."""
        report = build(paths, self.file, **options)
        for name in (*report.snapshots.removed, *report.snapshots.drop):
            self.written.pop(name, None)
        added = snapshots_in(self.file)
        for name in report.snapshots.added:
            self.written[name] = added[name]

    def _today(self) -> str:
        return f"2026-10-{self.day:02}"

    @rule(
        names=st.sets(st.sampled_from("abc"), min_size=1),
        keep=st.sampled_from([None, None, 1, 3]),
        is_new_day=st.booleans(),
    )
    def mirror_changes(
        self, names: set[str], keep: int | None, is_new_day: bool
    ) -> None:
        """Build a night, or the same day once more."""
        self.day = min(self.day + is_new_day, 28)
        night(self.mirrors, *names)
        self._build(
            [self.file, self.mirrors], snapshot=self._today(), keep_snapshots=keep
        )

    @rule(
        moment=st.sampled_from(MOMENTS),
        names=st.sets(st.sampled_from("abc"), min_size=1),
    )
    def build_is_killed(self, moment: str, names: set[str]) -> None:
        """Kill a build after one of its steps; what it published before counts."""
        self.day = min(self.day + 1, 28)
        night(self.mirrors, *names)
        child = os.fork()
        if child == 0:
            module = sqlite_file if hasattr(sqlite_file, moment) else replacement
            step = getattr(module, moment)

            def killed(*arguments: Any, **options: Any) -> Any:
                step(*arguments, **options)
                os.kill(os.getpid(), signal.SIGKILL)

            setattr(module, moment, killed)
            try:
                build([self.file, self.mirrors], self.file, snapshot=self._today())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        # A build that was killed after it published has added its snapshot.
        if self.file.exists():
            found = self._snapshots_in_file()
            assert self.written.items() <= found.items()
            self.written = found

    @rule(
        options=st.sampled_from([{}, {"keep_going": True}, {"snapshot": "2026-10-28"}])
    )
    def database_is_forgotten(self, options: dict[str, Any]) -> None:
        """Build the mirrors alone over the history."""
        # The snapshot of the same day is built again from the mirrors.
        built_again = f"site-{options['snapshot']}" if "snapshot" in options else ""
        would_be_lost = self.written.keys() - {built_again}
        try:
            self._build([self.mirrors], **options)
        except BuilderError:
            assert would_be_lost
        else:
            assert not would_be_lost
        if "snapshot" in options:
            self.day = 28

    @rule(size=st.sampled_from([0, 50, 5000, 20_000]), keep_going=st.booleans())
    def file_is_damaged(self, size: int, keep_going: bool) -> None:
        """Truncate the file; a build says so, and the operator restores it."""
        if not self.file.exists():
            return
        whole = self.file.read_bytes()
        os.truncate(self.file, size)
        for paths in ([self.file, self.mirrors], [self.mirrors]):
            if size == 0 and self.file not in paths:
                continue
            with pytest.raises(BuilderError):
                build(paths, self.file, keep_going=keep_going, snapshot="2026-10-28")
        assert self.file.stat().st_size == size
        self.file.write_bytes(whole)

    @rule()
    def program_is_upgraded(self) -> None:
        """Build the database from itself."""
        if self.file.exists():
            self._build([self.file])

    @rule(data=st.data())
    def snapshot_is_dropped(self, data: st.DataObject) -> None:
        """Remove a snapshot by its name."""
        if self.written and self.file.exists():
            name = data.draw(st.sampled_from(sorted(self.written)))
            self._build([self.file], drop=[name])

    def _snapshots_in_file(self) -> Snapshots:
        """Return the snapshots of the file with their binaries, as a build reads it."""
        build(self.file, self.folder / "read.db", force=True)
        return snapshots_in(self.folder / "read.db")

    @invariant()
    def nothing_is_lost(self) -> None:
        """Each snapshot that was written is in the file, with its binaries."""
        if not self.written:
            return
        found = self._snapshots_in_file()
        assert {name: found.get(name) for name in self.written} == self.written


TestNights = pytest.mark.slow(Nights.TestCase)
TestNights.settings = settings(
    max_examples=examples(5),
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
