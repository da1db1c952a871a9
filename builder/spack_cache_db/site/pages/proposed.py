"""The build that a page proposes, with its commands and where it is."""

from __future__ import annotations

from dataclasses import dataclass

from spack_cache_db.query.commands import Commands
from spack_cache_db.query.configurations import Presence, presence_of_configurations
from spack_cache_db.query.database import Lookups
from spack_cache_db.query.install_commands import commands_of
from spack_cache_db.query.proposal_rule import Proposal


@dataclass(frozen=True, slots=True)
class ProposedBuild:
    """The build that a page proposes, the commands for it, and where its configuration is."""

    proposal: Proposal
    commands: Commands
    presence: Presence


def proposed_build(
    lookups: Lookups, proposal: Proposal | None, release: str | None
) -> ProposedBuild | None:
    """Return a proposal with its commands, from a release or from any; None without a proposal."""
    if proposal is None:
        return None
    commands = commands_of(lookups, [proposal.spec], release).get(proposal.spec)
    if commands is None:
        return None
    key = proposal.configuration_id
    presence = presence_of_configurations(lookups, [key])[key]
    return ProposedBuild(proposal, commands, presence)
