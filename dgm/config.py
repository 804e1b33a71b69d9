"""Settings of a run: defaults here, then one TOML file, then ``--set a.b=c``, then flags; resolved once.

An unknown key is an error with a suggestion. The resolved settings are frozen in ``run.json`` and passed on by
constructor; no other module reads a configuration file or an environment variable.
"""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from dgm.domain import Budget
from dgm.errors import UserError

DEFAULT_EVALUATIONS = 160

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class BudgetSettings(_Section):
    """Limits of the whole run; a missing one is no limit, but a run without any ends after 160 evaluations."""

    evaluations: Count | None = None
    """Graded evaluations."""
    agents: Count | None = None
    """Members of the archive, the seed included."""
    tokens: Count | None = None
    """Tokens of all model calls, failed work included."""
    hours: Positive | None = None
    """Wall time over all sessions of the run."""

    def budget(self) -> Budget:
        """The same as a domain value."""
        seconds = None if self.hours is None else self.hours * 3600
        endless = self.evaluations is None and self.tokens is None and seconds is None
        evaluations = DEFAULT_EVALUATIONS if endless else self.evaluations
        return Budget(evaluations, self.agents, None, self.tokens, seconds)


class PolicySettings(_Section):
    """Which step comes next."""

    name: str = "hgm"
    """``hgm``, ``random``, or the name of an installed plug-in."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.6
    """Expand while evaluations ** alpha >= agents (arXiv:2510.21614)."""


class LimitSettings(_Section):
    """Bounds on a single action."""

    calls: Count = 80
    """Model calls of one action."""
    tokens: Count = 4_000_000
    """Tokens of one action."""
    improve_s: Positive = 300.0
    """Wall time of an agent that edits its own source."""
    check_s: Positive = 10.0
    """Wall time of an agent's self-check."""
    patch_bytes: Count = 2_000_000
    """A larger patch is the agent's fault, not kept and not graded."""
    workspace_bytes: Count = 128_000_000
    """A larger workdir is not read back."""
    agent_bytes: Count = 4_000_000
    """A larger scaffold is stillborn."""
    agent_files: Count = 500
    """A scaffold with more files is stillborn."""
    log_bytes: Count = 200_000
    """Kept of an agent's output."""
    tries: Count = 5
    """An action that the infrastructure failed this often, while others went well, is given up."""
    failures_in_a_row: Count = 20
    """After this many infrastructure failures with no success between, the run stops with a message."""


class EvidenceSettings(_Section):
    """What an agent sees of its own work when it improves itself."""

    failures: Annotated[int, Field(ge=0)] = 6
    """Unresolved evaluations shown."""
    successes: Annotated[int, Field(ge=0)] = 1
    """Resolved evaluations shown."""
    transcript_bytes: Count = 60_000
    """Kept of each transcript, from both ends."""


class Settings(_Section):
    """Everything that decides what a run does."""

    benchmark: str = "starter"
    """A suite's name under ``benchmarks/``, or the path of a suite's folder."""
    model: str = "offline"
    """The model that agents are lent."""
    operator: str = "self-edit"
    """How a child is made."""
    sandbox: Literal["auto", "docker", "bubblewrap"] = "auto"
    """Where agents run; auto = docker, else bubblewrap."""
    workers: Annotated[int, Field(ge=1, le=256)] = 2
    """Actions at once."""
    seed: int = 0
    """Every decision is a function of the log and this number."""
    seed_agent: str | None = None
    """Folder or git repository with an ``agent.toml``; default: the shipped seed."""
    policy: PolicySettings = PolicySettings()
    budget: BudgetSettings = BudgetSettings()
    limits: LimitSettings = LimitSettings()
    evidence: EvidenceSettings = EvidenceSettings()


def resolve(file: Path | None, assignments: Iterable[str], flags: Mapping[str, Any]) -> Settings:
    """Settings from all sources, later ones winning.

    Args:
        file: a TOML file, or None.
        assignments: ``a.b=c`` texts; the value is read as TOML, or as plain text where it is none.
        flags: dotted key → value; None values are ignored.

    Raises:
        UserError: a source cannot be read, a key is unknown or a value does not fit.
    """
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for key, value in _leaves(_read(file) if file else {}):
        _assign(merged, key, value)
        origin[key] = str(file)
    for text in assignments:
        key, found, value = text.partition("=")
        if not found:
            raise UserError(f"--set {text}: expected KEY=VALUE, for example --set policy.alpha=0.5")
        _assign(merged, key.strip(), _value(value.strip()))
        origin[key.strip()] = "--set"
    for key, value in flags.items():
        if value is not None:
            _assign(merged, key, value)
            limit = "max-" if key.startswith("budget.") else ""
            origin[key] = f"--{limit}{key.rpartition('.')[2].replace('_', '-')}"
    return validated(merged, origin)


def validated(values: Mapping[str, Any], origin: Mapping[str, str]) -> Settings:
    """Settings from a nested mapping; ``origin`` names the source of a dotted key for messages.

    Raises:
        UserError: the first thing wrong, in one line.
    """
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(_complaint(first, origin)) from error


def _complaint(error: ErrorDetails, origin: Mapping[str, str]) -> str:
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    where = next((source for known, source in origin.items() if key.startswith(known)), "settings")
    if error["type"] != "extra_forbidden":
        return f"{where}: {key} = {error['input']!r}: {error['msg'][0].lower()}{error['msg'][1:]}"
    near = difflib.get_close_matches(key, list(_known(Settings, "")), 1, 0.5)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return f"{where}: unknown setting '{key}'{hint}"


def _known(section: type[BaseModel], prefix: str) -> Iterable[str]:
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _known(kind, f"{prefix}{name}.")
        else:
            yield prefix + name


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{file}: no such settings file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read as settings: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file}: not valid TOML: {error}") from error


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _assign(table: dict[str, Any], key: str, value: Any) -> None:  # noqa: ANN401  (any TOML value)
    *sections, name = key.split(".")
    for section in sections:
        inner = table.setdefault(section, {})
        if not isinstance(inner, dict):
            raise UserError(f"--set {key}: '{section}' is a value, not a section")
        table = inner
    table[name] = value


def _value(text: str) -> Any:  # noqa: ANN401  (any TOML value)
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text
