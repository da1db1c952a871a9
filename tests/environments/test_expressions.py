"""environments.expressions: conditions about a machine, evaluated without running
anything.
"""

import os
import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_cache_db.environments.expressions import ExpressionError, evaluate_condition

NAMES = {
    "platform": "linux",
    "os": "rhel8",
    "target": "zen3",
    "arch": "platform=linux os=rhel8 target=zen3",
    "architecture": "platform=linux os=rhel8 target=zen3",
    "arch_str": "platform=linux os=rhel8 target=zen3",
    "hostname": "login-01",
}
ENV = {"SPACK_CI_TARGET": "zen3", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("platform == 'linux'", True),
        ('"rhel" in os and env.get("CRAYPE_VERSION")', False),
        ('"rhel" in os and not env.get("CRAYPE_VERSION")', True),
        ('env.get("SPACK_STACK_USE_OPENMPI", "") == "1"', False),
        ("'EMPTY' in env", True),
        ("target in ('zen2', 'zen3')", True),
        ("re.search(r'^login', hostname)", True),
        ("re.search('node|log.*', hostname)", True),
        ("os == (env.get('NO') or os)", True),
        ("'a' < 'b' < 'c'", True),
        ("not (platform == 'linux' or os == 'x')", False),
        ("env.get('NO') is None", True),
        ("os.startswith(('rhel', 'sles'))", True),
        ("('a', 'b') == ['a', 'b']", False),
    ],
)
def test_what_is_evaluated(text: str, expected: bool) -> None:
    """A condition has the truth that Python gives it."""
    assert evaluate_condition(text, NAMES, ENV) is expected
    known = {**NAMES, "env": ENV, "re": re}
    assert bool(eval(text, known)) is expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("target=x86_64_v3:", True),
        ("target=x86_64_v4:", False),
        ("platform=linux os=rhel8", True),
        ("arch=linux-rhel8-zen3", True),
    ],
)
def test_a_machine_satisfies_a_spec(spec: str, expected: bool) -> None:
    """`arch` is a spec of the machine; what a spec asks of an unknown part is not
    known.
    """
    for name in ("arch", "architecture"):
        assert evaluate_condition(f"{name}.satisfies('{spec}')", NAMES, ENV) is expected
    assert (
        evaluate_condition(f"arch.satisfies('{spec}')", {"hostname": "x"}, ENV) is None
    )


@pytest.mark.parametrize(
    "text",
    [
        "arch.satisfies('x86_64:')",
        "__import__('os').system('x')",
        "[]*9**9",
        "(lambda: 1)()",
        "platform.__class__",
        "open('/etc/passwd')",
        "re.search('(a+)+$', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab')",
        "re.search('a?a?a?a?a?a?a?a?aaaaaaaa', 'aaaaaaaa')",
        "re.search(r'^login-\\d+$', hostname)",
        "int(env)",
        "env['NO']",
        "",
        "(" * 500 + "1" + ")" * 400,
        "1 == " * 1_000 + "1",
        "\0",
        "os == 'x'\nplatform",
    ],
)
def test_what_is_refused(text: str) -> None:
    """Everything else is refused, whatever it would do or cost."""
    with pytest.raises(ExpressionError):
        evaluate_condition(text, NAMES, ENV)


ATOMS = st.sampled_from(
    [
        "platform",
        "os",
        "'linux'",
        "'rhel8'",
        "''",
        "env.get('EMPTY')",
        "env.get('NO')",
        "True",
    ]
)


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return a strategy for conditions that are made of others."""
    operators = st.sampled_from(["and", "or", "==", "!="])
    pairs = st.builds("({} {} {})".format, inner, operators, inner)
    return pairs | inner.map("(not {})".format)


CONDITIONS = st.recursive(ATOMS, joined, max_leaves=8)


@given(
    CONDITIONS, st.sampled_from([None, "linux", "darwin"]), st.sampled_from([None, ENV])
)
def test_a_condition_has_pythons_truth(
    text: str, platform: str | None, env: dict[str, str] | None
) -> None:
    """Of what is known; and what is decided though something is unknown is so for every
    value.
    """
    found = evaluate_condition(text, {"os": "rhel8", "platform": platform}, env)

    # What is unknown may be any of these.
    platforms = ["linux", "darwin", "rhel8", "", "x"]
    if platform is not None:
        platforms = [platform]
    environments: list[Mapping[str, str]] = [{}, ENV, {"NO": "linux"}, os.environ]
    if env is not None:
        environments = [env]
    truths = set()
    for name in platforms:
        for variables in environments:
            known = {"os": "rhel8", "platform": name, "env": variables}
            truths.add(bool(eval(text, known)))
    if platform is not None and env is not None:
        assert truths == {found}
    assert found is None or truths == {found}
