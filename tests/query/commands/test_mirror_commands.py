"""The commands for each kind of mirror and closure, from records alone."""

import shlex
from typing import Any

import pytest

from spack_cache_db.errors import bytes_text, series
from spack_cache_db.query.commands.closure_words import (
    MOST_NAMED,
    external_sentence,
    size_words,
)
from spack_cache_db.query.commands.install import (
    MAYBE_UNSIGNED,
    add_commands,
    install_commands,
    mirror_names,
)
from spack_cache_db.query.stored.closure import Closure, External, Member
from spack_cache_db.query.stored.mirrors import Mirror

TRUST = "yes | spack buildcache keys --install --trust"


def member(
    package: str,
    release: str | None = "r",
    *,
    size: int | None = 1_000_000,
    external: External | None = None,
) -> Member:
    """Return a member of a closure; it is missing without a release."""
    number = sum(map(ord, package))
    known = None if release is None else size
    return Member(number, package * 4, package, "1.0", release, known, external)


def closure(
    *members: Member, mirrors: tuple[Mirror, ...], is_known: bool = True
) -> Closure:
    """Return a closure; the first member is the binary."""
    return Closure(members, mirrors, is_known, "2026-11-01")


def mirror(name: str, *, stack: str | None = None, **more: Any) -> Mirror:
    """Return a mirror with an address, signed by default."""
    facts: dict[str, Any] = {"url": f"https://{name}", "is_signed": True} | more
    return Mirror(name, stack, **facts)


def test_an_unsigned_mirror_needs_no_keys() -> None:
    """Spack takes its binaries only if it is added as unsigned, and it has no keys to
    trust.
    """
    unsigned = mirror("team", is_signed=False)
    commands = install_commands(
        [closure(member("foo"), mirrors=(unsigned,))], ["foo/abc"]
    )

    assert commands.commands == (
        "spack mirror add --unsigned team https://team",
        "spack install --cache-only foo/abc",
    )
    assert commands.advice is None
    assert commands.is_complete is True


def test_a_signed_mirror_needs_its_keys() -> None:
    """Its keys are trusted after it was added."""
    commands = install_commands(
        [closure(member("foo"), mirrors=(mirror("m"),))], ["foo/abc"]
    )

    assert commands.commands == (
        "spack mirror add m https://m", TRUST, "spack install --cache-only foo/abc",
    )  # fmt: skip
    assert commands.advice is None


def test_a_mirror_that_may_be_unsigned_has_an_advice() -> None:
    """If it is not known, the signed form is printed, and what to do if it fails."""
    unknown = mirror("m", is_signed=None)
    commands = install_commands(
        [closure(member("foo"), mirrors=(unknown,))], ["foo/abc"]
    )

    assert commands.commands[:2] == ("spack mirror add m https://m", TRUST)
    assert commands.advice == MAYBE_UNSIGNED


def test_one_signed_mirror_of_two_needs_keys() -> None:
    """Each mirror is added in its own way, and keys are trusted once."""
    mirrors = (mirror("a", is_signed=False), mirror("b"))
    commands = install_commands([closure(member("foo"), mirrors=mirrors)], ["foo/abc"])

    assert commands.commands == (
        "spack mirror add --unsigned a https://a",
        "spack mirror add b https://b",
        TRUST,
        "spack install --cache-only foo/abc",
    )


def test_several_binaries_share_mirrors_and_a_line() -> None:
    """A mirror that two binaries need is added once; packages that both need count
    once.
    """
    shared = member("lib")
    both = [
        closure(member("foo"), shared, mirrors=(mirror("a"), mirror("b"))),
        closure(member("bar"), shared, mirrors=(mirror("b"),)),
    ]
    commands = install_commands(both, ["foo/abc", "bar/def"])

    assert [line.split()[3] for line in commands.commands[:2]] == ["a", "b"]
    assert commands.commands[2:] == (
        TRUST,
        "spack install --cache-only foo/abc bar/def",
    )
    assert commands.size == "3 packages, 3.0 MB"


def test_what_has_no_binary_is_built() -> None:
    """Without all binaries, Spack may build from source, and the packages are named."""
    gone = [member(name, None) for name in ("zlib", "gcc-runtime", "pkgconf")]
    glibc = member("glibc", None, external=External("/usr", ()))
    found = closure(member("foo"), *gone, glibc, mirrors=(mirror("a"),))
    commands = install_commands([found], ["foo/abc"])

    assert commands.commands[-1] == "spack install foo/abc"
    assert commands.builds == "builds gcc-runtime, pkgconf and zlib from source"
    assert commands.missing == "3 of 4 dependencies have no binary here"
    assert commands.is_complete is False
    assert commands.size is None
    assert commands.needs == ()
    one = closure(member("foo"), gone[0], mirrors=(mirror("a"),))
    assert (
        install_commands([one], ["foo/abc"]).missing
        == "1 of 1 dependency has no binary here"
    )


def test_complete_and_incomplete_binaries_have_a_line_each() -> None:
    """What needs no compiler is installed from binaries alone."""
    whole = closure(member("foo"), mirrors=(mirror("a"),))
    part = closure(member("bar"), member("lib", None), mirrors=(mirror("a"),))

    assert install_commands([whole, part], ["foo/abc", "bar/def"]).commands[-2:] == (
        "spack install --cache-only foo/abc", "spack install bar/def",
    )  # fmt: skip


def test_a_binary_that_the_mirror_lost_has_no_commands() -> None:
    """A sentence says when it was last listed, and nothing can be pasted."""
    lost = closure(member("foo", None), member("lib"), mirrors=(mirror("a"),))
    commands = install_commands([lost], ["foo/abc"])

    assert commands.commands == ()
    assert commands.is_complete is False
    assert commands.note == (
        "the mirror no longer lists this binary; it was last listed on 2026-11-01"
    )


def test_externals_are_needed() -> None:
    """Externals are named with their place, but not the C library."""
    system = [
        member("openmpi", None, external=External("/opt/site/openmpi", ())),
        member(
            "cray-mpich", None, external=External(None, ("PrgEnv-gnu", "cray-mpich/8"))
        ),
        member("musl", None, external=External("/usr", ())),
    ]
    found = closure(member("foo"), *system, mirrors=(mirror("a"),))

    assert install_commands([found], ["foo/abc"]).needs == (
        "needs openmpi@1.0 at /opt/site/openmpi, provided by the system",
        "needs cray-mpich@1.0 (module load PrgEnv-gnu cray-mpich/8), provided by the system",
    )
    assert external_sentence(
        system[0]._replace(version="", external=External(None, ()))
    ) == ("needs openmpi, provided by the system")


@pytest.mark.parametrize(
    ("url", "settings", "options"),
    [
        (
            "s3://b/x",
            {"endpoint_url": "https://s3.here"},
            "--s3-endpoint-url https://s3.here",
        ),
        ("s3://b/x", {"profile": "my team"}, "--s3-profile 'my team'"),
        (
            "s3://b/x",
            {"access_pair": {"id_variable": "ID", "secret_variable": "KEY"}},
            "--s3-access-key-id-variable ID --s3-access-key-secret-variable KEY",
        ),
        (
            "s3://b/x",
            {"access_token_variable": "TOKEN"},
            "--s3-access-token-variable TOKEN",
        ),
        (
            "oci://ghcr.io/x/y",
            {"access_pair": {"id_variable": "USER", "secret_variable": "PASSWORD"}},
            "--oci-username-variable USER --oci-password-variable PASSWORD",
        ),
        ("https://x", {"view": "gpu"}, "--name gpu"),
        ("https://x", {}, ""),
    ],
)
def test_settings_become_options(
    url: str, settings: dict[str, Any], options: str
) -> None:
    """What mirrors.yaml has besides the URL is an option of `spack mirror add`."""
    (line,) = add_commands([mirror("m", url=url, settings=settings)])

    assert line == " ".join(filter(None, ("spack mirror add", options, "m", url)))


def test_names_of_mirrors_are_names_for_spack() -> None:
    """A slash would be a path and a dash an option; two mirrors never share a name."""
    mirrors = [
        mirror("develop"),
        mirror("develop", stack="e4s", url="https://e4s"),
        mirror("develop", url="https://other"),
        mirror("-a/b\\c d"),
        mirror("é"),
    ]

    assert mirror_names(mirrors) == [
        "develop",
        "develop-e4s",
        "develop-2",
        "a-b-c-d",
        "mirror",
    ]


def test_commands_are_quoted() -> None:
    """No part of a mirror can end the command or start another one."""
    url = "https://x/$(id) '; rm *"
    odd = mirror("m", url=url, settings={"profile": "`id`"})
    (line,) = add_commands([odd])

    assert shlex.split(line)[-4:] == ["--s3-profile", "`id`", "m", url]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (39_171, "39.2 kB"),
        (999_600, "1.0 MB"),
        (212_000_000, "212 MB"),
        (1_400_000_000, "1.4 GB"),
        (5 * 10**15, "5,000 TB"),
    ],
)
def test_sizes_have_units(size: int, text: str) -> None:
    """Sizes have two or three digits and a decimal unit."""
    assert bytes_text(size) == text


def test_a_size_is_known_or_not_printed() -> None:
    """One binary without a known size, or unknown dependencies, leave the size
    unknown.
    """
    mirrors = (mirror("a"),)
    whole = closure(member("foo"), member("lib", size=None), mirrors=mirrors)
    unknown = closure(member("foo"), mirrors=mirrors, is_known=False)

    assert size_words([whole]) is None
    assert size_words([unknown]) is None
    assert size_words([closure(member("foo"), mirrors=mirrors)]) == "1 package, 1.0 MB"


def test_long_lists_of_names_are_cut() -> None:
    """A sentence names some packages, and counts the others."""
    names = [f"p{number:02}" for number in range(20)]

    assert series(["a"], MOST_NAMED) == "a"
    assert series(["a", "b", "c"], MOST_NAMED) == "a, b and c"
    assert series(names, MOST_NAMED).endswith("p11 and 8 more")
