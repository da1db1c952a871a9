"""The build that a page proposes, with its commands and where it is."""

from __future__ import annotations

from dataclasses import dataclass

from spack_cache_db.query.choice.proposed import Proposal
from spack_cache_db.query.commands.install import commands_of
from spack_cache_db.query.commands.model import Commands
from spack_cache_db.query.open.lookups import Lookups
from spack_cache_db.query.stored.presence import Presence, presence_of_configurations


@dataclass(frozen=True, slots=True)
class ProposedBuild:
    """The build that a page proposes, the commands for it, and where its configuration
    is.

    `is_named` says that the reader named this build, so that no rule chose it.
    """

    proposal: Proposal
    commands: Commands
    presence: Presence
    is_named: bool = False

    @property
    def reason(self) -> str:
        """Why its commands are shown."""
        return "your choice" if self.is_named else self.proposal.reason


def proposed_build(
    lookups: Lookups, proposal: Proposal | None, release: str | None
) -> ProposedBuild | None:
    """Return a proposal with its commands, from a release or from any.

    None without a proposal, or if there are no commands for it.
    """
    if proposal is None:
        return None
    commands = commands_of(lookups, [proposal.spec], release).get(proposal.spec)
    if commands is None:
        return None
    configuration = proposal.configuration_id
    presence = presence_of_configurations(lookups, [configuration])
    return ProposedBuild(proposal, commands, presence[configuration])
