"""This machine and all settings, from a program (``dgm doctor``, ``dgm settings``)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dgm.api.arguments import assignments_of
from dgm.api.records import Records, records_of
from dgm.blocking import block, in_python
from dgm.sandboxes.engine_address import use_engine
from dgm.sessions.machine import check_machine, check_model
from dgm.sessions.setting_search import find_matching


@dataclass(frozen=True, slots=True)
class MachineView:
    """The checks of this machine with their results."""

    ok: bool
    """True if a search can run here; with a named model, if it answers as well."""
    checks: Records
    """A row for each check: ``check``, ``ok``, and ``detail``, which is what was seen or the remedy."""


def doctor(
    model: str | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    engine: str | Sequence[str] | None = None,
) -> MachineView:
    """Check Python, git, disk, models and sandboxes; each sandbox is opened and probed from the inside. Blocks.

    Args:
        model: also make one small real call to this model, with a tool; this may cost money.
        settings: of the model, such as ``providers.openai-compatible.base_url``.
        engine: address of the Docker engine, such as ``ssh://user@host``, or several; None: the environment's.
    """
    return block(lambda _: _check(model, settings or {}, engine), None)


def settings(pattern: str = "") -> Records:
    """Return a row for each setting: name, type, default and meaning.

    Args:
        pattern: a part of a name, or a name with ``*`` and ``?``; where no name has it, the meanings are searched.

    Raises:
        UserError: nothing matches.
    """
    with in_python():
        sections, _ = find_matching(pattern)
    return records_of([asdict(setting) for section in sections for setting in section.settings])


def variables(pattern: str = "") -> Records:
    """Return a row for each environment variable that dgm reads: its name and meaning; raises as ``settings``."""
    with in_python():
        _, found = find_matching(pattern)
    return records_of([variable._asdict() for variable in found])


async def _check(
    model: str | None, settings: Mapping[str, Any], engine: str | Sequence[str] | None
) -> MachineView:
    with use_engine(engine):
        # Nobody is asked here, and what a person agreed to on a terminal does not hold for a program.
        rows, usable = await check_machine(lambda _: False)
    if model is not None:
        asked = await check_model(model, assignments_of(settings))
        rows, usable = [*rows, *asked], usable and all(row.ok for row in asked)
    return MachineView(usable, records_of([row._asdict() for row in rows]))
