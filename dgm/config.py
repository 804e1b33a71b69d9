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
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
KeyPath = tuple[str, ...]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class BudgetSettings(_Section):
    """Limits of the whole run; a missing one is no limit, but a run without any ends after 160 evaluations."""

    evaluations: Count | None = None
    """Graded evaluations."""
    agents: Count | None = None
    """Members of the archive, the seed included."""
    usd: Positive | None = None
    """Money for all model calls, failed work included; no call is made whose worst case would cross it."""
    tokens: Count | None = None
    """Tokens of all model calls, failed work included."""
    hours: Positive | None = None
    """Wall time over all sessions of the run."""
    expansion_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Evaluations of the budget that one expansion takes; 0: only evaluations count, as in arXiv:2510.21614."""

    def budget(self) -> Budget:
        """The same as a domain value."""
        seconds = None if self.hours is None else self.hours * 3600
        limited = any(limit is not None for limit in (self.evaluations, self.usd, self.tokens, seconds))
        evaluations = self.evaluations if limited else DEFAULT_EVALUATIONS
        return Budget(evaluations, self.agents, self.usd, self.tokens, seconds, self.expansion_cost)


class PolicySettings(_Section):
    """Which step comes next."""

    name: str = "hgm"
    """One of those that ``docs/policies.md`` lists, or the name of an installed plug-in."""
    gate: str | None = None
    """Expand or evaluate; default: the policy's own. So with each of the following."""
    parent: str | None = None
    """Who has a child."""
    evaluation: str | None = None
    """Who is evaluated."""
    task: str | None = None
    """On what."""
    recommendation: str | None = None
    """Which agent is the best."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.6
    """Of the gate ``hgm``: expand while evaluations ** alpha >= agents (arXiv:2510.21614)."""


class LimitSettings(_Section):
    """Bounds on a single action."""

    calls: Count = 80
    """Model calls of one action."""
    tokens: Count = 4_000_000
    """Tokens of one action."""
    usd: Positive | None = None
    """Money for the model calls of one action; the agent is told when it is spent."""
    output_tokens: Count = 16_000
    """Of one reply, reasoning included; a larger wish is cut down to this."""
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
    """After this many infrastructure failures with no success between, the run pauses while the model's provider does
    not answer, and stops with a message where it does."""
    pause_s: Positive = 30.0
    """How often a paused run asks whether the provider answers again (which costs nothing)."""


class ProviderSettings(_Section):
    """How one provider of models is reached."""

    base_url: str | None = None
    """Address of the API; default: the provider's own, or what its own environment variable says."""
    key_env: str | None = None
    """Environment variable that holds the key; default ``OPENAI_API_KEY`` or ``ANTHROPIC_API_KEY``. Keys themselves
    are never settings."""
    concurrency: Count = 16
    """Calls at once, of all workers; fewer after the provider has said that it is too many."""
    waiting: Count = 2_000
    """Calls that wait for their turn; one more fails."""
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    timeout_s: Positive = 600.0
    """Without a byte from the provider."""
    tries: Count = 8
    """Of one call, the first included, where the provider fails in a way that may pass."""
    backoff_s: Positive = 1.0
    """Before the second try; doubled for each further one, up to 60 s, with jitter. ``Retry-After`` wins."""
    stream: bool = True
    """Ask the provider to stream, so that a dead connection is noticed early."""
    api: Literal["responses", "chat"] = "responses"
    """OpenAI only: which of its two protocols. OpenAI-compatible endpoints are always asked by ``chat``."""


class PriceSettings(_Section):
    """What a model costs, in USD per million tokens; 0 is a price."""

    input: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    output: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    cached_input: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Input that the provider's cache held; default: as ``input``."""
    cache_write: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Input that is written to the provider's cache; default: as ``input``."""
    max_output: Count | None = None
    """Output tokens that the model can give at most."""


class ModelsSettings(_Section):
    """Models by role, and how their providers are reached."""

    solve: str | None = None
    """The model of agents that work on tasks; default: ``model``."""
    improve: str | None = None
    """The model of agents that edit their own source; default: ``model``."""
    diagnose: str | None = None
    """The model that reads failures; default: ``model``."""
    openai: ProviderSettings = ProviderSettings()
    anthropic: ProviderSettings = ProviderSettings()
    compatible: ProviderSettings = ProviderSettings()
    """``openai-compatible/…``; needs a ``base_url``."""
    prices: Mapping[str, PriceSettings] = {}
    """Model name as in ``model`` → price; wins over the shipped table."""


class SwebenchSettings(_Section):
    """Benchmarks in SWE-bench's format."""

    subset: str | None = None
    """A shipped subset's name or a subset file: which instances are searched on, which are held out."""
    images: Mapping[str, str] = {}
    """Instance id, repository (``owner/name``) or ``*`` → a Docker image with the repository at ``/testbed``; wins over
    the published ones."""
    disk_gb: Positive = 120.0
    """Instance images beyond this are removed, the longest unused first, by ``dgm benchmark fetch``."""
    agent_s: Positive = 1800.0
    """Wall time of an agent on one instance."""
    tests_s: Positive = 1800.0
    """Wall time of an instance's tests, its build included; default as in the swebench package."""


class PolyglotSettings(_Section):
    """Benchmarks in the layout of Aider's polyglot benchmark."""

    languages: tuple[Literal["cpp", "go", "java", "javascript", "python", "rust"], ...] = (
        "cpp",
        "go",
        "java",
        "javascript",
        "python",
        "rust",
    )
    attempts: Annotated[int, Field(ge=1, le=2)] = 1
    """2: a second try sees the output of the first one's tests (Aider's protocol); 1: as in arXiv:2505.22954."""
    passing_stubs: bool = False
    """Keep exercises whose stub passes untouched."""


class BenchmarksSettings(_Section):
    """What benchmarks need to know beyond their name."""

    swebench: SwebenchSettings = SwebenchSettings()
    polyglot: PolyglotSettings = PolyglotSettings()


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
    """A suite's name under ``benchmarks/`` or the path of a suite's folder; ``swebench:`` and a data set's name or
    file; ``polyglot:`` and a folder or git URL; several of these joined by ``+``."""
    model: str = "auto"
    """The model that agents are lent: ``openai/…``, ``anthropic/…``, ``openai-compatible/…``, ``offline``, the name of
    an installed plug-in; ``auto`` chooses and says why."""
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
    models: ModelsSettings = ModelsSettings()
    benchmarks: BenchmarksSettings = BenchmarksSettings()


def resolve(file: Path | None, assignments: Iterable[str], flags: Mapping[str, Any]) -> Settings:
    """Settings from all sources, later ones winning.

    Args:
        file: a TOML file, or None.
        assignments: ``a.b=c`` texts; the value is read as TOML, or as plain text where it is none.
        flags: dotted key → value; None values are ignored.

    Raises:
        UserError: a source cannot be read, a key is unknown, or a value does not fit, alone or with another.
    """
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for path, value in _leaves(_read(file) if file else {}):
        _assign(merged, path, value)
        origin[".".join(path)] = str(file)
    for text in assignments:
        key, found, value = text.partition("=")
        if not found:
            raise UserError(f"--set {text}: expected KEY=VALUE, for example --set policy.alpha=0.5")
        path = _path(key.strip())
        _assign(merged, path, _value(value.strip()))
        origin[".".join(path)] = "--set"
    for key, value in flags.items():
        if value is not None:
            _assign(merged, tuple(key.split(".")), value)
            limit = "max-" if key.startswith("budget.") else ""
            origin[key] = f"--{limit}{key.rpartition('.')[2].replace('_', '-')}"
    settings = validated(merged, origin)
    _check_expansion_cost(settings.budget, origin)
    return settings


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


def _check_expansion_cost(budget: BudgetSettings, origin: Mapping[str, str]) -> None:
    if budget.expansion_cost and budget.budget().evaluations is None:
        key = "budget.expansion_cost"
        where = next((source for known, source in origin.items() if _overlap(known, key)), "settings")
        raise UserError(
            f"{where}: {key} = {budget.expansion_cost:g}: there is no budget of evaluations that it could be taken of; "
            "set budget.evaluations (--max-evaluations) too"
        )


def _complaint(error: ErrorDetails, origin: Mapping[str, str]) -> str:
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    where = next((source for known, source in origin.items() if _overlap(known, key)), "settings")
    if error["type"] != "extra_forbidden":
        return f"{where}: {key} = {error['input']!r}: {error['msg'][0].lower()}{error['msg'][1:]}"
    near = difflib.get_close_matches(key, list(_known(Settings, "")), 1, 0.5)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return f"{where}: unknown setting '{key}'{hint}"


def _overlap(known: str, key: str) -> bool:
    """Whether one dotted key is the other, or a part of it."""
    return f"{known}.".startswith(f"{key}.") or f"{key}.".startswith(f"{known}.")


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


def _leaves(table: Mapping[str, Any], prefix: KeyPath = ()) -> Iterable[tuple[KeyPath, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def _path(key: str) -> KeyPath:
    """The parts of a dotted key; a part with dots of its own is quoted, as in TOML."""
    try:
        inner: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return tuple(key.split("."))
    path: list[str] = []
    while isinstance(inner, dict):
        name, inner = next(iter(inner.items()))
        path.append(name)
    return tuple(path)


def _assign(table: dict[str, Any], path: KeyPath, value: Any) -> None:  # noqa: ANN401  (any TOML value)
    *sections, name = path
    for section in sections:
        inner = table.setdefault(section, {})
        if not isinstance(inner, dict):
            raise UserError(f"setting {'.'.join(path)}: '{section}' is a value, not a section")
        table = inner
    table[name] = value


def _value(text: str) -> Any:  # noqa: ANN401  (any TOML value)
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text
