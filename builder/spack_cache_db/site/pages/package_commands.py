"""Commands in several forms, which are tabs on a page: for a shell, and as files."""

from __future__ import annotations

from typing import NamedTuple

from spack_cache_db.model import Configuration
from spack_cache_db.query.answers.covered import Cover
from spack_cache_db.query.commands.as_files import dockerfile_text, environment_text
from spack_cache_db.query.commands.model import Commands


class Tab(NamedTuple):
    """One form of the commands.

    Attributes:
        id: the end of its id on the page.
        label: the name of the tab.
        lines: the lines, to be shown and copied.
    """

    id: str
    label: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines, to be copied."""
        return "\n".join(self.lines)


def tabs_of(commands: Commands, configuration: Configuration) -> tuple[Tab, ...]:
    """Return the forms of commands that install a binary; none for those that load an
    installed spec, or if there are no commands.

    The lines for a shell are without those that a machine needs only once.
    """
    if commands.load or not commands.steps:
        return ()
    tabs = [Tab("shell", "Shell", commands.steps)]
    files = {
        "spack.yaml": environment_text(commands, [configuration.spec]),
        "Dockerfile": dockerfile_text(commands, configuration),
    }
    for label, text in files.items():
        if text is not None:
            name = label.partition(".")[0].lower()
            tabs.append(Tab(name, label, tuple(text.splitlines())))
    return tuple(tabs)


def tabs_of_environment(commands: Commands, cover: Cover) -> tuple[Tab, ...]:
    """Return the forms of commands that install an environment; none for a lockfile,
    which needs no other file, or if nothing is installed from a mirror.

    The `spack.yaml` names each binary exactly, and has the other specs as they are:
    Spack builds those.
    """
    if cover.is_lock or not commands.closures:
        return ()
    specs = []
    for spec in cover.specs:
        if spec.status == "binary" and spec.configuration is not None:
            specs.append(spec.configuration.spec)
        elif spec.query:
            specs.append(spec.query)
    text = environment_text(commands, specs)
    return (
        Tab("shell", "Shell", commands.commands),
        Tab("spack", "spack.yaml", tuple(text.splitlines())),
    )
