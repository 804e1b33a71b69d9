"""The agents that a search can start from, for programs (``dgm agent list``)."""

from dgm.api.records import Records, records_of
from dgm.sessions import seed_agents as sessions


def seed_agents() -> Records:
    """Return a row for each shipped agent: name, description, default use, size, folder.

    A name is a ``seed_agent`` of ``dgm.evolve``; a copy of the folder is a start for an agent of your own.
    """
    return records_of(sessions.list_seed_agents())
