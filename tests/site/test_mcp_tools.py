"""site.mcp_tools and llms.txt: what assistants can ask, and what they are refused."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.server import free_port
from spack_cache_db.assembly.builds import build
from tests.paths import ROOT
from tests.processes import completed
from tests.programs import install_plugins
from tests.serving import Server, running, serving
from tests.site.addresses import get
from tests.site.conftest import IS_065

TOOLS = (
    "find_binary",
    "check_environment",
    "what_changed",
    "explain",
    "dependents",
    "package",
)
PACKAGES = (
    "annotated-types",
    "cffi",
    "cryptography",
    "datasette-mcp",
    "httpcore2",
    "httpx2",
    "mcp",
    "mcp-types",
    "opentelemetry-api",
    "pycparser",
    "pydantic",
    "pydantic-core",
    "pyjwt",
    "sse-starlette",
    "starlette",
    "truststore",
    "typing-inspection",
)
"""The plugin and the client, with what they need beside the packages of test.lock."""
ENVIRONMENT = "spack:\n  specs:\n  - hdf5\n  - zlib@77\n"
SIDES = {"old": "develop-2025-04-20", "new": "develop"}
QUESTIONS = (
    ("find_binary", {"spec": "hdf5+mpi", "machine": "zen3"}, ["find", "--install"]),
    ("check_environment", {"text": ENVIRONMENT}, ["cover"]),
    ("what_changed", SIDES, ["diff"]),
    ("dependents", {"spec": "hdf5@1.14:"}, ["dependents"]),
)
"""Tools with arguments, and the commands that print the same JSON."""
HOSTILE = (
    ("find_binary", {"spec": "hdf5 @@@"}, "expected a version after '@'"),
    ("find_binary", {"spec": ""}, "expected a package name"),
    ("find_binary", {"spec": "a" * 3_000}, "at most 2,000 are read"),
    ("find_binary", {"spec": "hdf5", "machine": "z" * 300}, "at most 200 are read"),
    ("find_binary", {"spec": "hdf5", "machine": "zen33"}, "zen3"),
    ("explain", {"spec": "hdf5\0"}, "NUL character"),
    ("explain", {"spec": "hdf5", "release": "nowhere"}, "no release is called"),
    ("dependents", {"spec": "hdf5@@"}, "expected a version after '@'"),
    ("dependents", {"spec": "hdf5", "release": "nowhere"}, "no release is called"),
    ("check_environment", {"text": "spack: [["}, "broken YAML"),
    ("check_environment", {"text": "zlib\n" * 1_001}, "1,000"),
    ("what_changed", {"old": "develop", "new": "'; DROP"}, "no release is called"),
    ("package", {"name": "hdf6"}, "near: hdf5"),
    ("package", {"name": "../" * 60}, "no package has this name"),
)
"""Arguments that no page answers, and a part of the sentence that refuses them."""
NO_TIME = """
from spack_cache_db.site import mcp_tools
from spack_cache_db.site.http import own_pages
from spack_cache_db.site.sql import limits

limits.STEPS = 1
inside = mcp_tools.run_page

async def without_time(*arguments):
    own_pages.PAGE_SECONDS = 0
    try:
        return await inside(*arguments)
    finally:
        own_pages.PAGE_SECONDS = 2.0

mcp_tools.run_page = without_time
"""
"""A plugin of the owner that leaves the tools no time, but all pages."""

pytestmark = pytest.mark.skipif(not IS_065, reason="tried with Datasette 0.65")


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with datasette-mcp and the official client."""
    folder = tmp_path_factory.mktemp("mcp")
    install_plugins(folder, *PACKAGES)
    return folder


@pytest.fixture(scope="module")
def server(
    plugin: Path, database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """The site with `--mcp`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", _path_of(plugin))
        folder = tmp_path_factory.mktemp("served")
        with serving(database, "--mcp", temporary=folder) as started:
            yield started


def _path_of(plugin: Path) -> str:
    return os.pathsep.join(map(str, (plugin, ROOT / "builder", ROOT)))


def _ask(plugin: Path, server: Server, *calls: Any, mode: str = "auto") -> Any:
    """Return the answers of the official client, in a process that has it."""
    command = [
        sys.executable,
        "-m",
        "tests.site.mcp_client",
        f"{server.address}/-/mcp",
        mode,
    ]
    environment = {**os.environ, "PYTHONPATH": _path_of(plugin)}
    done = completed(command, check=True, input=json.dumps(calls), env=environment)
    return json.loads(done.stdout)


def _printed(database: Path, tool: str, arguments: dict[str, str], words: Any) -> Any:
    """Return the JSON that a command prints for the arguments of a tool."""
    program = [sys.executable, "-m", "spack_cache_db"]
    given = {
        "find_binary": [arguments.get("spec", ""), database, "--host", "zen3"],
        "check_environment": ["-", database],
        "what_changed": [*SIDES.values(), database],
        "dependents": [arguments.get("spec", ""), database],
    }[tool]
    command = [*program, *words, *given, "--json"]
    return json.loads(completed(command, input=arguments.get("text", "")).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_assistant_gets_what_the_commands_print(
    plugin: Path, server: Server, database: Path, mode: str
) -> None:
    """With the official client of both protocols: six tools with descriptions, and the
    JSON of the commands from any process.
    """
    calls = [(tool, arguments) for tool, arguments, _ in QUESTIONS]
    found = _ask(plugin, server, *calls, *calls, mode=mode)

    assert set(TOOLS) < found["tools"].keys()
    assert all("Returns:" in found["tools"][tool] for tool in TOOLS)
    for question, answer in zip(
        (*QUESTIONS, *QUESTIONS), found["answers"], strict=True
    ):
        assert not answer["is_error"], answer
        document = json.loads(answer["text"])
        expected = _printed(database, *question)
        assert expected.items() <= document.items(), question[0]
        assert document.keys() - expected.keys() <= {"count", "notes"}


@pytest.mark.slow
def test_an_assistant_learns_why_there_is_nothing(plugin: Path, server: Server) -> None:
    """`explain` and `find_binary` name what exists instead; a package has its data."""
    calls = [
        ("explain", {"spec": "hdf5@99"}),
        ("find_binary", {"spec": "hdf5@99"}),
        ("explain", {"spec": "hdf5"}),
        ("package", {"name": "HDF5"}),
        ("find_binary", {"spec": "hdf5 with mpi for zen3", "machine": "m1"}),
        ("find_binary", {"spec": "hdf5 %gcc target=zen3"}),
    ]
    answers = _ask(plugin, server, *calls)["answers"]
    documents = [json.loads(answer["text"]) for answer in answers]
    why, nothing, some, package, words, moved = documents

    assert why["count"] == 0
    assert any("newest 1.14.10" in reason for reason in why["reasons"])
    assert (nothing["found"], nothing["install"]) == ([], None)
    assert nothing["notes"] == why["reasons"]
    assert some["count"] == 5
    assert some["reasons"] == []
    assert (package["name"], package["spec_count"]) == ("hdf5", 14)
    # Plain words, whose machine replaces the other; options behind a compiler.
    assert "read as hdf5 +mpi on zen3" in words["notes"]
    assert words["install"] is not None
    assert any(
        "the answer for hdf5 target=zen3 %gcc" in note for note in moved["notes"]
    )


@pytest.mark.slow
def test_hostile_arguments_are_refused_with_a_sentence(
    plugin: Path, server: Server
) -> None:
    """Each has the sentence of a page, no traceback, and no line of log."""
    calls = [(tool, arguments) for tool, arguments, _ in HOSTILE]
    answers = _ask(plugin, server, *calls)["answers"]

    for (tool, _, expected), answer in zip(HOSTILE, answers, strict=True):
        assert answer["is_error"], (tool, expected, answer)
        assert expected in answer["text"], (tool, expected)
        assert "Traceback" not in answer["text"]
        assert "unexpected" not in answer["text"] or "@" in answer["text"]
    log = server.log.read_text(encoding="utf-8")
    assert "Traceback" not in log
    assert "error:" not in log
    assert f"Assistants connect to {server.address}/-/mcp" in log
    # Nothing would be sent to a client that waits for messages.
    assert server.get("/-/mcp").status_code == 405


@pytest.mark.slow
def test_permissions_hold_for_assistants(
    plugin: Path, database: Path, tmp_path: Path
) -> None:
    """Who may not view the database gets no answer about it."""
    config = tmp_path / "metadata.yml"
    config.write_text("databases: {spack-cache: {allow: {id: staff}}}\n")
    port = free_port()
    program = [sys.executable, "-m", "spack_cache_db"]
    options = ["--mcp", "--port", str(port), "--metadata", str(config)]
    command = [*program, "serve", str(database), *options]
    environment = {**os.environ, "PYTHONPATH": _path_of(plugin)}
    with running(command, port, env=environment) as closed:
        call = ("package", {"name": "hdf5"})
        (answer,) = _ask(plugin, closed, call)["answers"]

    assert answer["is_error"]
    assert "you may not view this database" in answer["text"]


@pytest.mark.slow
def test_what_takes_too_long_is_stopped(
    plugin: Path, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is that of a page; the assistant may ask for less."""
    monkeypatch.setenv("PYTHONPATH", _path_of(plugin))
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "no_time.py").write_text(NO_TIME, encoding="utf-8")
    options = ("--mcp", "--plugins-dir", str(plugins))
    with serving(database, *options, temporary=tmp_path) as server:
        calls = [
            ("find_binary", {"spec": "+mpi"}),
            ("check_environment", {"text": ENVIRONMENT}),
            ("what_changed", SIDES),
        ]
        answers = _ask(plugin, server, *calls)["answers"]

    assert all(answer["is_error"] for answer in answers), answers
    slow, pasted, changed = (answer["text"] for answer in answers)
    assert "the time limit of a page" in slow
    assert "takes too long for a web page" in pasted
    assert "the time limit of a page" in changed


@pytest.mark.slow
def test_the_session_of_the_documentation_is_true(
    plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer in docs/assistants.md is a part of what the sample answers."""
    monkeypatch.setenv("PYTHONPATH", _path_of(plugin))
    file = tmp_path / "spack-cache.db"
    build([str(ROOT / "pages")], file)
    page = (ROOT / "docs" / "assistants.md").read_text(encoding="utf-8")
    session = page.split("```\n> ")[1].split("\n```")[0]
    calls = []
    shown = []
    for part in session.split("\n\n> "):
        call, _, answer = part.partition("\n")
        tool, _, arguments = call.partition(" ")
        calls.append((tool, json.loads(arguments)))
        shown.append(answer)
    with serving(file, "--mcp", temporary=tmp_path) as server:
        answers = _ask(plugin, server, *calls)["answers"]

    assert len(shown) == 3
    for text, answer in zip(shown, answers, strict=True):
        if text.startswith("error: "):
            assert answer["is_error"]
            assert answer["text"].endswith(text.removeprefix("error: "))
        else:
            assert _contains(json.loads(answer["text"]), json.loads(text)), text


def _contains(document: Any, part: Any) -> bool:
    """Return whether a JSON document has the keys and values of another one."""
    if isinstance(part, dict):
        return all(_contains(document[key], value) for key, value in part.items())
    return bool(document == part)


@pytest.mark.slow
def test_without_the_plugin_the_option_names_it(database: Path) -> None:
    """`serve --mcp` does not start, and says what to install."""
    program = [sys.executable, "-m", "spack_cache_db", "serve", database, "--mcp"]
    # Other tests of this module have a server with the plugin on this path.
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "builder")}
    done = completed(program, env=environment)

    assert done.returncode == 2
    assert "pip install 'spack-cache-db[mcp]'" in done.stderr


@pytest.mark.asyncio(loop_scope="session")
async def test_llms_txt_is_one_screen_whose_addresses_answer(datasette: Any) -> None:
    """Each address is complete, and answers with names that the database has."""
    answer = await get(datasette, "/llms.txt")
    text = answer.text
    spec = (await get(datasette, "/spack-cache/specs.json?_shape=array")).json()[0]
    names = {
        "OLD": SIDES["old"],
        "NEW": SIDES["new"],
        "NAME": "hdf5",
        "HASH": spec["hash"],
    }
    addresses = re.findall(r"\]\(http://localhost(/[^)]*)\)", text)

    assert answer.headers["content-type"].startswith("text/plain")
    assert len(text.splitlines()) <= 30
    assert len(addresses) >= 10
    assert text.count("](") == len(addresses)
    for address in addresses:
        filled = re.sub("[A-Z]{3,}", lambda match: names[match[0]], address)
        assert (await get(datasette, filled)).status_code == 200, filled
