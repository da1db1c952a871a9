"""The package from Python: arguments, records, tables, errors, a database that stays
open.
"""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import spack_cache_db
from spack_cache_db.errors import BuilderError, Fault, InputError, LineFault
from tests.commands import run
from tests.pagetexts import SAMPLES

SPEC = "py-mpi4py@4 target=x86_64_v3"


@pytest.fixture(scope="module")
def cache(samples_file: Path) -> Iterator[spack_cache_db.Cache]:
    """The sample pages, open."""
    with spack_cache_db.Cache(samples_file) as opened:
        yield opened


class PathLike:
    """A path of a class of its own, as `os.PathLike` allows."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


PATHS: tuple[Callable[[Path], Any], ...] = (
    str,
    Path,
    PathLike,
    lambda path: (path, str(path)),
    lambda path: iter([path]),
)


def test_paths_are_one_or_many_texts_or_paths(tmp_path: Path) -> None:
    """The same input in any form."""
    for paths in PATHS:
        report = spack_cache_db.build(paths(SAMPLES), tmp_path / "x.db")
        assert (report.pages, report.specs) == (5, 413)
        assert spack_cache_db.check(paths(SAMPLES)) == ((), ())


A_NAME = "a name: printable characters, no blank at either end, none of = + - @ first"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paths": 7}, "paths is 7 (int), expected a path or several, str or Path"),
        (
            {"paths": b"pages"},
            "paths is b'pages' (bytes), expected a path or several, str or Path",
        ),
        ({"paths": [b"a"]}, "a path is b'a' (bytes), expected str or Path"),
        ({"paths": []}, "paths is empty, expected at least one file or folder"),
        ({"output": None}, "output is None (NoneType), expected str or Path"),
        ({"output": ""}, "output is empty, expected the path of the database to write"),
        ({"release": ""}, f"release is '', expected {A_NAME}"),
        ({"stack": "a\nb"}, f"stack is 'a\\nb', expected {A_NAME}"),
        ({"db": None}, "db is None (NoneType), expected str or Path"),
        ({"db": ""}, "db is empty, expected the path of a file made by build"),
        ({"limit": -1}, "limit is -1, expected a whole number from 0"),
        ({"limit": "3"}, "limit is '3', expected a whole number from 0"),
    ],
)
def test_a_wrong_argument_is_refused_in_words(
    arguments: dict[str, Any], message: str, samples_file: Path, tmp_path: Path
) -> None:
    """By a `TypeError` of ours, before anything is read or written."""
    of_find: dict[str, Any] = {"db": samples_file, "query": "zlib"} | arguments
    of_build: dict[str, Any] = {
        "paths": SAMPLES,
        "output": tmp_path / "x.db",
    } | arguments
    calls: list[Callable[[], object]] = [lambda: spack_cache_db.build(**of_build)]
    if not {"db", "limit"}.isdisjoint(arguments):
        calls = [lambda: spack_cache_db.find(**of_find)]
    elif "output" not in arguments:
        of_check = {name: each for name, each in of_build.items() if name != "output"}
        calls.append(lambda: spack_cache_db.check(**of_check))
        calls.append(lambda: spack_cache_db.verify(tmp_path / "x.db", **of_check))

    for call in calls:
        with pytest.raises(spack_cache_db.ArgumentError) as caught:
            call()
        assert str(caught.value) == message
        assert isinstance(caught.value, BuilderError)
        assert isinstance(caught.value, TypeError)
    assert not list(tmp_path.iterdir())


def test_a_record_is_what_json_prints(samples_file: Path) -> None:
    """`as_dict` and `as_dicts` give the objects that `find` prints, key by key in their
    order.
    """
    found = spack_cache_db.find(samples_file, SPEC, with_hashes=True)
    printed = json.loads(run("find", SPEC, samples_file, "--json").stdout)
    hashes = json.loads(run("find", SPEC, samples_file, "--json", "--hashes").stdout)
    dicts = [answer.as_dict() for answer in found]

    assert found
    assert json.loads(json.dumps(dicts)) == printed
    assert [list(each) for each in dicts] == [list(each) for each in printed]
    assert (
        json.loads(json.dumps([row for each in found for row in each.as_dicts()]))
        == hashes
    )

    covered = spack_cache_db.cover(samples_file, [SPEC, "hdf5"])
    assert json.loads(json.dumps(covered.as_dict()))["binary"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_result_is_a_data_frame(samples_file: Path, library: str) -> None:
    """A row for each configuration, a column for each field, and values as they are."""
    frames = pytest.importorskip(library, reason=f"{library} is beside Datasette 1.0")
    found = spack_cache_db.find(samples_file, "py-mpi4py")
    frame = frames.DataFrame(found)

    assert len(frame) == len(found) > 3
    assert list(frame.columns)[:-1] == list(found[0].as_dict())
    assert list(frame["version"]) == [answer.version for answer in found]
    assert list(frame["spec_count"]) == [each.spec_count for each in found]
    assert [tuple(releases) for releases in frame["releases"]] == [
        each.releases for each in found
    ]


def test_a_notebook_shows_a_table(samples_file: Path) -> None:
    """All columns and rows up to a bound; what looks like markup is text."""
    found = spack_cache_db.find(samples_file, "*")
    many = spack_cache_db.FoundList(list(found) * 10)
    odd = spack_cache_db.Found(
        "<b>", "1", "gcc", "os", "linux", "t", (), 1, (), (), None, None
    )

    assert found._repr_html_().count("<tr>") == len(found) + 1
    assert many._repr_html_().count("<tr>") < len(many)
    assert "<th>last_seen</th>" in many._repr_html_()
    assert "&lt;b&gt;" in spack_cache_db.FoundList([odd])._repr_html_()


def test_every_result_is_a_table(cache: spack_cache_db.Cache) -> None:
    """In a notebook and as a data frame: a row for each record, as its command prints
    them.
    """
    polars = pytest.importorskip("polars")
    results = {
        "cover": cache.cover([SPEC, "hdf5"]),
        "history": cache.history("py-mpi4py"),
        "diff": cache.diff("develop-2025-04-20", "develop"),
        "find": cache.find(SPEC),
        "info": cache.info(),
    }

    for name, found in results.items():
        columns, records = found.rows
        rows = list(records)
        assert rows, name
        assert found._repr_html_().count("<tr>") == min(len(rows), 50) + 1
        assert f"<tr><th>{columns[0]}</th>" in found._repr_html_()
        if name != "info":
            frame = polars.DataFrame(rows, infer_schema_length=None)
            assert (frame.height, set(frame.columns)) == (len(rows), set(columns)), name


def test_an_open_file_answers_as_the_functions_do(
    cache: spack_cache_db.Cache, samples_file: Path
) -> None:
    """Each method gives what the function of its name gives for the path, from any
    thread.
    """
    calls: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("find", (SPEC,)),
        ("cover", ([SPEC, "hdf5"],)),
        ("diff", ("develop", "develop")),
        ("history", ("py-mpi4py",)),
        ("info", ()),
    )
    expected = [
        getattr(spack_cache_db, name)(samples_file, *given) for name, given in calls
    ]
    with ThreadPoolExecutor(4) as threads:
        asked = [
            threads.submit(getattr(cache, name), *given) for name, given in calls * 10
        ]

    assert [each.result() for each in asked] == expected * 10

    again = pickle.loads(pickle.dumps(cache))
    assert again.find(SPEC) == cache.find(SPEC)
    again.close()


def failures(folder: Path, file: Path) -> dict[str, Callable[[], object]]:
    """Return calls that end in each public error."""
    folder.joinpath("bad.md").write_text("---")
    folder.joinpath("spack.yaml").write_text("spack: [")
    return {
        "ArgumentError": lambda: spack_cache_db.find(file, "hdf5", limit=-1),
        "DatabaseError": lambda: spack_cache_db.info(folder / "bad.md"),
        "InputError": lambda: spack_cache_db.build(folder / "bad.md", folder / "x.db"),
        "OutputError": lambda: spack_cache_db.build(SAMPLES, folder),
        "QuerySyntaxError": lambda: spack_cache_db.find(file, "hdf5 +"),
        "UnknownNameError": lambda: spack_cache_db.find(file, "hdf5", release="x"),
        "UnreadableEnvironment": lambda: spack_cache_db.cover(
            file, folder / "spack.yaml"
        ),
        "UnsupportedQuery": lambda: spack_cache_db.find(file, "hdf5 ^zlib"),
    }


def test_an_error_is_the_same_in_another_process(
    samples_file: Path, tmp_path: Path
) -> None:
    """Type, text and attributes of each error survive pickling and copying."""
    calls = failures(tmp_path, samples_file)
    raised: list[BuilderError] = [LineFault(3, "what", "where")]
    raised.append(InputError([Fault("b", 1, "x"), Fault("a", 0, "y")]))

    for name, call in calls.items():
        with pytest.raises(getattr(spack_cache_db, name)) as error:
            call()
        raised.append(error.value)
    for each in raised:
        each.add_note("in a worker")
        for other in (pickle.loads(pickle.dumps(each)), copy.copy(each)):
            assert type(other) is type(each)
            assert str(other) == str(each)
            assert other.args == each.args
            assert vars(other) == vars(each)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("a.md", 3, "is bad"), "a.md:3: is bad"),
        (Fault("a.md", 0, "is bad"), "a.md: is bad"),
        (Fault("a\nb.md", 1, "is \x1b[31mred"), "a\\nb.md:1: is \\x1b[31mred"),
        (Fault("ä.md", 0, "ist schlecht"), "ä.md: ist schlecht"),
    ],
)
def test_a_fault_is_one_line(fault: Fault, text: str) -> None:
    """Place, line if there is one, message; control characters are spelled out."""
    assert str(fault) == text
