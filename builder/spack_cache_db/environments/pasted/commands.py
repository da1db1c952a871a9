"""Reads the specs in a command line of Spack.

In `spack install --fresh -j 8 hdf5 +mpi`, the spec is `hdf5 +mpi`. The options are
those of `spack COMMAND --help` from Spack 0.17 to 1.2: they decide that `8` is the
value of `-j`, and not a spec.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from spack_cache_db.environments.pasted.model import PastedSpec
from spack_cache_db.environments.pasted.quotes import unquoted


@dataclass(frozen=True, slots=True)
class Command:
    """How a command of Spack takes its arguments.

    Attributes:
        values: options whose value is the next word: `-j 8`.
        spec_values: options whose value, the next word, is a spec: `--spec hdf5`.
        mirror_options: options that name a mirror, in place of the first argument;
            they are in `values` as well.
        argument_count: number of arguments before the specs: 1 for the name or URL of a
            mirror, 2 for the action and the path of a view.
        is_certain: whether each argument is a spec, even if its name is unknown.
    """

    values: frozenset[str] = frozenset()
    spec_values: frozenset[str] = frozenset()
    mirror_options: frozenset[str] = frozenset()
    argument_count: int = 0
    is_certain: bool = False


def _command(
    values: str = "",
    *,
    spec_values: str = "",
    mirror_options: str = "",
    argument_count: int = 0,
    is_certain: bool = False,
) -> Command:
    """Return a command; each text has options with blanks between them."""
    every_mirror_option = frozenset(mirror_options.split())
    return Command(
        values=frozenset(values.split()) | every_mirror_option,
        spec_values=frozenset(spec_values.split()),
        mirror_options=every_mirror_option,
        argument_count=argument_count,
        is_certain=is_certain,
    )


# Options of several commands whose value is the next word.
_CDASH = (
    "--cdash-upload-url --cdash-build --cdash-site --cdash-track --cdash-buildstamp"
)
_INSTALL = f"""
-f --file -u --until -p --concurrent-packages -j --jobs --only --use-buildcache --test
--log-format --log-file --add-repo {_CDASH}
"""
_PUSH = "-k --key --only --base-image -t --tag --group -j --jobs --scope"
_PUSH_MIRROR = "-d --directory -m --mirror-name --mirror-url"
_SPEC = "-c --cover --format --show --deptype"
_MODULES = "-n --name -p --prefix -x --exclude"

COMMANDS = {
    "add": _command("-l --list-name", is_certain=True),
    "build-env": _command("--dump --pickle"),
    "buildcache check": _command(
        "-m --mirror-url -o --output-file --scope", spec_values="-s --spec"
    ),
    "buildcache create": _command(
        _PUSH, mirror_options=_PUSH_MIRROR, argument_count=1, is_certain=True
    ),
    "buildcache download": _command("-p --path", spec_values="-s --spec"),
    "buildcache get-buildcache-name": _command(spec_values="-s --spec"),
    "buildcache install": _command("-m --multiple", is_certain=True),
    "buildcache list": _command(),
    "buildcache preview": _command(),
    "buildcache push": _command(
        _PUSH, mirror_options=_PUSH_MIRROR, argument_count=1, is_certain=True
    ),
    "buildcache save-specfile": _command(
        "--specfile-dir", spec_values="--root-spec -s --specs"
    ),
    "change": _command("-l --list-name", spec_values="--match-spec", is_certain=True),
    "checksum": _command("-j --jobs"),
    "deconcretize": _command(),
    "dependencies": _command("--deptype"),
    "dependents": _command("--deptype"),
    "deprecate": _command("-l --link-type"),
    "dev-build": _command(
        "-j --jobs -d --source-path --drop-in --test -b --before -u --until",
        is_certain=True,
    ),
    "develop": _command("-p --path -b --build-directory", is_certain=True),
    "diff": _command("-a --attribute --ignore"),
    "edit": _command("-r --repo -N --namespace"),
    "extensions": _command("-s --show"),
    "fetch": _command(),
    "find": _command("--format -t --tag --install-tree --start-date --end-date"),
    "gc": _command("-e --except-environment"),
    "graph": _command("--deptype"),
    "info": _command(),
    "install": _command(_INSTALL, is_certain=True),
    "load": _command(is_certain=True),
    "location": _command("-e --env -v --view"),
    "logs": _command(),
    "mark": _command(),
    "mirror create": _command(
        "-d --directory -j --jobs -f --file --exclude-file --exclude-specs -n --versions-per-spec"
    ),
    "module lmod find": _command(_MODULES),
    "module lmod loads": _command(_MODULES),
    "module lmod refresh": _command(_MODULES),
    "module tcl find": _command(_MODULES),
    "module tcl loads": _command(_MODULES),
    "module tcl refresh": _command(_MODULES),
    "patch": _command(),
    "remove": _command("-l --list-name"),
    "restage": _command(),
    "rm": _command("-l --list-name"),
    "solve": _command(_SPEC, is_certain=True),
    "spec": _command(_SPEC, is_certain=True),
    "stage": _command("-p --path -e --exclude"),
    "test run": _command(f"--alias --log-format --log-file --timeout {_CDASH}"),
    "test-env": _command("--dump --pickle"),
    "undevelop": _command(),
    "uninstall": _command("--origin"),
    "unload": _command(),
    "verify libraries": _command(),
    "verify manifest": _command(),
    "verify versions": _command(),
    "versions": _command("-j --jobs"),
    "view": _command(
        "-e --exclude -d --dependencies --projection-file",
        argument_count=2,
        is_certain=True,
    ),
}
"""The commands of Spack that take specs, by name (`buildcache push`)."""

_SHELL = """
alias cat cd chmod chown cp df du echo eval exec export find grep head less ln ls mkdir mv popd
pushd rm rmdir rsync scp set source ssh tail tar test touch unset vi vim
"""
SHELL_COMMANDS = frozenset(_SHELL.split())
"""Commands of a shell: in `cd /project`, `cd` is no package and `/project` no hash."""

MOST_WORDS = 3
"""Words of the longest name in `COMMANDS`."""

_GLOBALS = "-C --config-scope -D --env-dir -c --config -e --env --color"
_GLOBAL_VALUES = frozenset(_GLOBALS.split())
"""Options of `spack` itself whose value is the next word."""
_COUNTS = "-j --jobs -p --concurrent-packages -n --versions-per-spec"
_NUMBER_OPTIONS = frozenset(_COUNTS.split())
"""Options whose value is a number; it may be absent."""

_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
"""A word, which may have quoted parts with blanks: `cflags='-O2 -g'`."""
_END = re.compile(r"[|&;#]|\d?>|\\$")
"""The beginning of a word that ends a command in a shell: a pipe, a separator, a
comment, a redirection, or a backslash alone.
"""


def spec_in_command(text: str) -> PastedSpec | None:
    """Return the specs in a command line of Spack as one text; None for other texts.

    In `$ spack install -j 8 hdf5 zlib | tee log`, these are `hdf5 zlib`; the words
    `install -j 8` are left out.
    """
    words = _WORD.findall(text)
    for position, word in enumerate(words):
        # The program may be written as ~/spack/bin/spack or (spack.
        file_name = word.rpartition("/")[2]
        program = file_name.lstrip("$>%`(")
        if program != "spack":
            continue
        # A folder or a user may be called spack too: go on if no command follows.
        pasted = _read_command(words[position + 1 :])
        if pasted is not None:
            return pasted
    return None


def _read_command(words: list[str]) -> PastedSpec | None:
    """Return the specs of a command; `words` are those after `spack`.

    None if they do not begin with one of `COMMANDS`.
    """
    # Options of `spack` itself come before the command.
    start = 0
    while start < len(words) and words[start].startswith("-"):
        start += 2 if words[start] in _GLOBAL_VALUES else 1
    name = _command_name(words[start:])
    if name is None:
        return None
    command = COMMANDS[name]
    position = start + len(name.split())

    # Each word up to the end of the command is an option, its value, an argument before
    # the specs, or a spec.
    left_out = words[:position]
    specs: list[str] = []
    arguments_left = command.argument_count
    while position < len(words) and not _END.match(words[position]):
        word = words[position]
        following = words[position + 1 : position + 2]
        length = _option_length(command, word, following, is_first=not specs)
        if length == 2 and word in command.spec_values:
            # `--spec hdf5`
            left_out.append(word)
            specs.append(unquoted(following[0]))
        elif length > 0:
            # `--fresh`, or `-j 8`
            left_out += words[position : position + length]
            # The option names the mirror, so no argument does.
            option_name = word.partition("=")[0]
            if option_name in command.mirror_options:
                arguments_left = 0
        elif arguments_left > 0:
            # The name of a mirror, or the path of a view.
            left_out.append(word)
            arguments_left -= 1
        else:
            specs.append(unquoted(word))
        # A word that is not an option has the length 0.
        position += max(length, 1)
        # `hdf5;` ends the command.
        if words[position - 1].endswith(";"):
            break

    # A command in a sentence ends with its punctuation.
    spec = " ".join(specs).rstrip(".,;?!")
    return PastedSpec(spec, " ".join(left_out), is_certain=command.is_certain)


def _command_name(words: list[str]) -> str | None:
    """Return the longest name in `COMMANDS` with which words begin, None without
    one.
    """
    for length in range(min(MOST_WORDS, len(words)), 0, -1):
        name = " ".join(words[:length])
        if name in COMMANDS:
            return name
    return None


def _option_length(
    command: Command, option: str, following: list[str], *, is_first: bool
) -> int:
    """Return the number of words of an option: 2 with a value behind it, else 1.

    0 for a word that is not an option.

    Args:
        command: the command that has the option.
        option: the word.
        following: the word behind it, if there is one.
        is_first: whether there is no spec before it. `-mpi` behind a spec is a variant.
    """
    if not option.startswith("-"):
        return 0
    # `--fresh`, `-j` and `-j8` are options everywhere, but `-mpi` only before a spec.
    is_option = option.startswith("--") or len(option) == 2 or option[2:].isdigit()
    if not is_first and not is_option:
        return 0
    # `--only=package` has its value in it.
    if not following or "=" in option:
        return 1
    takes_value = option in command.values or option in command.spec_values
    if not takes_value:
        return 1
    # `-j` takes a number if one follows, but the `-p` of some commands takes a path.
    takes_number = option in _NUMBER_OPTIONS and not _is_path_option(command, option)
    if takes_number and not following[0].isdigit():
        return 1
    return 2


def _is_path_option(command: Command, option: str) -> bool:
    """Return whether `-p` stands for `--path` or `--prefix` in a command.

    In the commands with `--concurrent-packages`, it stands for this option.
    """
    return option == "-p" and "--concurrent-packages" not in command.values
