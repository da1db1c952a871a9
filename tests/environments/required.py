"""The specs of an environment as texts."""

from spack_cache_db.environments.model import UserSpec
from spack_cache_db.environments.rules import required_query


def required_text(spec: UserSpec) -> str:
    """Return a spec with what is required of its package, or why it is not a spec."""
    if spec.query is None:
        return str(spec.error)
    return required_query(spec.query, spec.rules).text
