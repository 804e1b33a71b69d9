"""Arguments of the Python API in the form in which settings take them."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dgm import plugins
from dgm.archive.run import merge_tables
from dgm.config import Settings, resolve, validate_settings
from dgm.errors import UserError
from dgm.models.scripted import Script, lend_script
from dgm.sandboxes.engine_address import use_engine

MAX_WORKERS = 4096
EMPTY: Mapping[str, Any] = MappingProxyType({})
SettingValues = Mapping[str, Any] | Sequence[str]
"""Settings by dotted name, with values or tables; or the texts ``KEY=VALUE`` of a command line."""


def name_of(group: str, given: Any) -> str | None:  # noqa: ANN401  (a name, a path or any object)
    """Return the name that settings give a plug-in, an object of the program's own among them.

    Args:
        group: such as ``policies``.
        given: a name, a path, an object or its class; None stays None.
    """
    if given is None or isinstance(given, str):
        return given
    return str(given) if isinstance(given, Path) else plugins.lend_object(group, given)


def model_of(given: str | Script | None) -> str | None:
    """Return the name of a model, of a list of replies or a function that returns one among them; None stays None.

    Raises:
        UserError: the list holds something else than replies.
    """
    return given if given is None or isinstance(given, str) else lend_script(given)


def assignments_of(settings: SettingValues | None) -> Sequence[str]:
    """Return settings as texts ``KEY=VALUE``."""
    if isinstance(settings, Mapping):
        return [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    return list(settings or ())


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a search, as an argument of ``evolve`` and ``resume``; None is no limit, or the old one."""

    usd: float | None = None
    """Cost of all model calls, failed work included."""
    evaluations: int | None = None
    """Graded evaluations."""
    agents: int | None = None
    """Agents of the archive, the seed included."""
    tokens: int | None = None
    """Tokens of all model calls, failed work included."""
    hours: float | None = None
    """Wall time of all sessions."""
    until_score: float | None = None
    """End when the lower bound of the best agent's rate on the search tasks reaches this share."""
    patience: int | None = None
    """End when no better agent was recommended in this many evaluations."""

    def settings(self) -> Mapping[str, float]:
        """Return the limits by dotted name."""
        return {f"budget.{name}": limit for name, limit in asdict(self).items() if limit is not None}


def split_engine(settings: SettingValues | None) -> tuple[SettingValues, Sequence[str]]:
    """Return settings without ``engine``, and the addresses that it gives.

    The address of the engine is about this machine, so that no run records it.
    """
    if settings is None:
        return {}, ()
    if isinstance(settings, Mapping):
        engine = settings.get("engine", ())
        others = {key: value for key, value in settings.items() if key != "engine"}
        return others, (engine,) if isinstance(engine, str) else tuple(engine or ())
    prefix = "engine="
    engines = [text.removeprefix(prefix).strip("\"'") for text in settings if text.startswith(prefix)]
    return [text for text in settings if not text.startswith(prefix)], engines


@contextmanager
def use_settings(settings: SettingValues | None, flags: Mapping[str, Any] = EMPTY) -> Iterator[Settings]:
    """Resolve settings and arguments, and let the engine that they name count until the end of the block.

    Raises:
        UserError: a key is unknown, or a value is invalid.
    """
    others, engines = split_engine(settings)
    resolved = resolve(None, others, flags)
    refuse_receivers(resolved)
    with use_engine(engines):
        yield resolved


def refuse_receivers(settings: Settings) -> None:
    """Make sure that settings name no receivers, which only a search has.

    Raises:
        UserError: they do.
    """
    for name, addresses in (("sinks.to", settings.sinks.to), ("notify.to", settings.notify.to)):
        if addresses:
            raise UserError("only searches have receivers", argument=name)
    if settings.notify.on_event is not None:
        raise UserError("only searches have receivers", argument="notify.on_event")


def apply_assignments(
    base: Mapping[str, Any], assignments: Iterable[str] | Mapping[str, Any], allowed: Sequence[str], who: str
) -> Settings:
    """Return settings with some of them replaced, of which only some are allowed.

    Args:
        base: the settings to start from, as JSON.
        assignments: as ``dgm.config.resolve`` takes them.
        allowed: top-level names of settings that may be set.
        who: the subject of the message, for example "a live replay".

    Raises:
        UserError: a setting is unknown, does not fit or may not be set here.
    """
    resolved = resolve(None, assignments, {})
    refuse_receivers(resolved)
    changes = resolved.model_dump(mode="json", exclude_unset=True)
    other = sorted(set(changes) - set(allowed))
    if other:
        names = [name if name in ("workers", "sandbox") else f"{name}.*" for name in allowed]
        raise UserError(
            f"{other[0]}: {who} sets {', '.join(names[:-1])} and {names[-1]} only", argument="settings"
        )
    return validate_settings(merge_tables(base, changes), {"": "settings"})


def path_of(given: str | Path | None) -> Path | None:
    """Return a path; None stays None."""
    return None if given is None else Path(given)


def check_workers(count: int | None) -> None:
    """Make sure that a number of parallel actions is one.

    Raises:
        UserError: it is not from 1 to ``MAX_WORKERS``.
    """
    if count is not None and not 1 <= count <= MAX_WORKERS:
        raise UserError(f"{count}: must be from 1 to {MAX_WORKERS}", argument="workers")


def check_amount(name: str, given: float | None) -> None:
    """Make sure that a limit is one.

    Raises:
        UserError: it is not a finite number above 0.
    """
    if given is not None and not (math.isfinite(given) and given > 0):
        raise UserError(f"{given}: must be a number above 0", argument=name)
