"""The agents that a search can start from, for programs (``dgm agent list``, ``init``, ``check``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.api.arguments import assignments_of, check_amount, model_of
from dgm.api.records import Records, records_of
from dgm.blocking import block, in_python
from dgm.models.scripted import Script
from dgm.sessions import seed_agents as sessions
from dgm.sessions.agent_check import MAX_USD, CheckChoice, findings_record
from dgm.sessions.agent_check import check_agent as perform
from dgm.sessions.agent_templates import DEFAULT, create_agent


@dataclass(frozen=True, slots=True)
class AgentCheckView:
    """The findings about an agent before a search."""

    fit: bool
    """True if nothing would stop a search."""
    findings: Records
    """A row for each part: ``level`` (``ok``, ``warn`` or ``stop``), ``part``, ``said``, and ``write``: the remedy."""
    usd: float
    """Cost of the conversation with a real model; 0 without one."""


def seed_agents() -> Records:
    """Return a row for each shipped agent: name, description, default use, size, folder.

    A name is a ``seed_agent`` of ``dgm.evolve``; a copy of the folder is a start for an agent of your own.
    """
    return records_of(sessions.list_seed_agents())


def init_agent(
    folder: str | Path,
    template: str = DEFAULT,
    *,
    repository: str | Path | None = None,
    evolve: Sequence[str] = (),
) -> Path:
    """Write a working agent into a new or empty folder, and return the folder.

    Args:
        folder: the new folder; its parent must be there.
        template: one that ``dgm agent init --help`` lists.
        repository: a folder whose setup of the template's program is taken over, as with ``--import``.
        evolve: what of that setup evolution may edit, too: ``hooks``, ``permissions``, ``mcp``.

    Raises:
        UserError: there is no such template, the folder is not empty, or there is nothing to import.
    """
    with in_python():
        source = None if repository is None else Path(repository)
        return create_agent(Path(folder), template, source, evolve).folder


def check_agent(
    folder: str | Path,
    model: str | Script | None = None,
    *,
    max_usd: float = MAX_USD,
    sandbox: str = "auto",
    settings: Mapping[str, Any] | None = None,
) -> AgentCheckView:
    """Say what would stop a search with an agent: manifest, sizes, packages, start, dry conversations. Blocks.

    Args:
        folder: of the agent.
        model: also let it do one small task with this model; this may cost money.
        max_usd: limit on the cost of that task.
        sandbox: ``auto``, ``docker`` or ``bubblewrap``.
        settings: such as ``{"limits.check_s": 30}``.

    Raises:
        UserError: there is no such folder, or a setting or the model is wrong.
        Infrastructure: a sandbox or the model failed.
    """
    with in_python():
        check_amount("max_usd", max_usd)
    choice = CheckChoice(sandbox, model_of(model), max_usd, assignments_of(settings))
    done = block(lambda _: perform(Path(folder), choice), None)
    return AgentCheckView(done.fit, records_of(findings_record(done)), done.usage.usd)
