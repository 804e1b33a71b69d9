"""The settings by section, but for how a child is made: what limits a run and its actions, who decides, who answers."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dgm.config.section import Count, Positive, Section
from dgm.domain import Budget

DEFAULT_EVALUATIONS = 160


class BudgetSettings(Section):
    """Limits of the whole run; a missing one is no limit, but a run without any ends after 160 evaluations.

    ``agents``, ``until_score`` and ``patience`` alone are no limits in this sense.
    """

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
    until_score: Annotated[float, Field(gt=0, lt=1)] | None = None
    """End when the lower bound of the best agent's rate on the search tasks reaches this share, such as 0.6."""
    patience: Count | None = None
    """End when no better agent was recommended in this many graded evaluations (``docs/ends.md``)."""
    confirm_above_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Ask on a terminal before a search may spend more than this; without it nobody is asked."""

    def budget(self) -> Budget:
        """Return the limits as a domain value; without any limit, it has ``DEFAULT_EVALUATIONS``."""
        seconds = None if self.hours is None else self.hours * 3600
        limited = any(limit is not None for limit in (self.evaluations, self.usd, self.tokens, seconds))
        evaluations = self.evaluations if limited else DEFAULT_EVALUATIONS
        return Budget(
            evaluations,
            self.agents,
            self.usd,
            self.tokens,
            seconds,
            self.expansion_cost,
            self.until_score,
            self.patience,
        )


class PolicySettings(Section):
    """Rules that choose the next step."""

    name: str = "lineage"
    """One of those that ``dgm docs policies`` describes, or the name of an installed plug-in, or ``module:Class`` of
    your own."""
    gate: str | None = None
    """Expand or evaluate; default: the policy's own. So with each of the following."""
    parent: str | None = None
    """Rule that chooses the parent of the next child."""
    evaluation: str | None = None
    """Rule that chooses the agent to evaluate."""
    task: str | None = None
    """Rule that chooses the task of an evaluation."""
    recommendation: str | None = None
    """Rule that chooses the best agent."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.6
    """Exponent of the gate ``hgm``: expand while evaluations ** alpha >= agents (arXiv:2510.21614). No other built-in
    gate reads it, and a run with one of those is refused if it is set; plug-ins may read it."""


class LimitSettings(Section):
    """Bounds on a single action."""

    calls: Count = 80
    """Model calls of one action: of each try at a task, probes of a child among them, and of all that makes
    a child."""
    tokens: Count = 4_000_000
    """Tokens of one action; the call that crosses it is still answered."""
    usd: Positive | None = None
    """Money for the model calls of one action; the agent is told when it is spent. Counted as ``calls``."""
    output_tokens: Count | None = None
    """Maximum tokens of one reply, reasoning included; a larger wish is cut to this. Default: the model's own, up to
    32,000, and 16,000 where that is not known; never more than half of a known context."""
    child_calls: Count | None = None
    """Model calls for making one child, over all agents at work on it and all questions of its operator, where they are
    to be fewer than ``calls``."""
    child_tokens: Count | None = None
    """Tokens for making one child; the call that crosses it is still answered."""
    child_usd: Positive | None = None
    """Money for making one child; no call is made whose worst case would cross it. A child that is cut off is judged by
    what is there."""
    child_s: Positive | None = None
    """Wall time for making one child, from the operator's start; an answer that is under way is waited for, and
    vetting is not in it."""
    solve_s: Positive | None = None
    """Wall time of an agent at a task; default: as the task says."""
    improve_s: Positive = 300.0
    """Wall time of an agent that edits its own source."""
    time_factor: Positive = 1.0
    """Factor of an agent's wall time, at tasks and at its own source, for models that answer slowly."""
    check_s: Positive = 10.0
    """Processor time of an agent's self-check, and of each dry run of it. A search whose seed needs more than a third
    of it gives children three times what the seed needs; the seed itself may take 120 s. The clock may show three times
    as much, at least 30 s; at a second try at least twice that, and as much more as the machine is busy."""
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
    stillborn_in_a_row: Annotated[int, Field(ge=0)] = 11
    """After this many stillborn children of one cause in a row, none born between, the session ends with a message; 0:
    it never does. What counts as one cause: ``docs/operators.md``."""
    pause_s: Positive = 30.0
    """Seconds between the checks of a paused run whether the provider answers again; each is one small, paid call."""

    def solve_limit_s(self, task_s: float) -> float:
        """Return the wall time, in seconds, of an agent at a task that gives it ``task_s``."""
        return (task_s if self.solve_s is None else self.solve_s) * self.time_factor

    @property
    def improve_limit_s(self) -> float:
        """The wall time, in seconds, of an agent that edits its own source."""
        return self.improve_s * self.time_factor


class ProviderSettings(Section):
    """Connection to one provider of models."""

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
    """Calls that are begun within a minute; further ones wait."""
    tokens_per_minute: Count | None = None
    """Tokens that calls may take within a minute, by what is set aside for each; further calls wait."""
    timeout_s: Positive = 600.0
    """Without a byte from the provider."""
    tries: Count = 8
    """Tries of one call, the first included, where the provider fails in a way that may pass."""
    backoff_s: Positive = 1.0
    """Before the second try; doubled for each further one, up to 60 s, with jitter. ``Retry-After`` wins."""
    stream: bool = True
    """Allow streams: as the agent asks, and always for dgm's own questions."""
    tools: bool = True
    """Agents call tools. False: the check of the model asks for none, for agents that act by text alone."""
    answer_schema: bool | Mapping[str, bool] = {}
    """Ask dgm's own questions with a JSON schema: for all models, or by the provider's name of each. Default:
    where OpenAI and Anthropic document it; a server of your own is asked only if this says so. Where it is refused, the
    question is asked again without."""
    api: Literal["responses", "chat", "messages"] | None = None
    """The protocol. Default at OpenAI: ``responses`` (or ``chat``); at Azure, Bedrock and Vertex: by the model's name.
    Anthropic is always asked by ``messages``, a compatible server by ``chat``."""
    reasoning_effort: Annotated[str, Field(pattern=r"^[a-z]+$")] | None = None
    """Put into requests that name none: ``low``, ``medium``, ``high`` …, as the provider calls them."""
    extra_headers: Mapping[str, str] = {}
    """Sent with every request. ``env:NAME`` is read from the environment and kept secret, as keys are."""
    extra_body: Mapping[str, Any] = {}
    """Merged into the body of every request, over what it holds; ``env:NAME`` as in ``extra_headers``."""


class AzureSettings(ProviderSettings):
    """Connection to models at Microsoft Azure; ``base_url`` is the resource's address."""

    api_version: str | None = None
    """Version of the API; default: ``OPENAI_API_VERSION``, else the API without versions (``/openai/v1``)."""


class BedrockSettings(ProviderSettings):
    """Connection to models at Amazon Bedrock; credentials come from AWS's usual chain."""

    region: str | None = None
    """Such as ``us-east-1``; default: ``AWS_REGION``, else the profile's."""
    profile: str | None = None
    """Profile of AWS's configuration; default: ``AWS_PROFILE``, else the default one."""


class VertexSettings(ProviderSettings):
    """Connection to models at Google Vertex AI; credentials are Google's application default ones."""

    project: str | None = None
    """Id of the project; default: ``GOOGLE_CLOUD_PROJECT``."""
    region: str | None = None
    """Such as ``europe-west1`` or ``global``; default: ``GOOGLE_CLOUD_LOCATION``."""


class PriceSettings(Section):
    """Price of a model, in USD per million tokens; 0 is a price."""

    input: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Input that no cache held."""
    output: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Output, reasoning included."""
    cached_input: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Input that the provider's cache held; default: as ``input``."""
    cache_write: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Input that is written to the provider's cache; default: as ``input``."""
    max_output: Count | None = None
    """Output tokens that the model can give at most."""


class RequestSettings(Section):
    """Changes of every request to one model, for servers that refuse what agents send.

    ``dgm doctor --model`` proposes those that its question needs.
    """

    drop: tuple[str, ...] = ()
    """Left out: ``["temperature", "reasoning.effort", "messages[].name"]``."""
    rename: Mapping[str, str] = {}
    """Key → the key that is sent in its place: ``{max_tokens = "max_completion_tokens"}``."""
    set: Mapping[str, Any] = {}
    """Always sent, over what the request holds: ``{enable_thinking = false}``."""

    @model_validator(mode="after")
    def _keep_the_request(self) -> Self:
        named = {*self.drop, *self.rename, *self.rename.values(), *self.set}
        if kept := sorted(named & {"model", "messages", "input", "tools", "system", "instructions"}):
            raise ValueError(f"'{kept[0]}' is the request itself and cannot be changed")
        return self


class WeightedModel(Section):
    """One of several models of a role."""

    model: str
    """Its full name."""
    weight: Positive = 1.0
    """Models are drawn in proportion to their weights."""


def _parse_models(value: object) -> object:
    """Read a list of names or of tables with ``model`` and ``weight``, or a table of weights by name.

    Raises:
        ValueError: it is none of these, empty, or names a model twice.
    """
    if value is None or isinstance(value, str):
        return value
    rows = (
        [{"model": name, "weight": weight} for name, weight in value.items()]
        if isinstance(value, dict)
        else value
    )
    if not isinstance(rows, list | tuple):
        # pydantic reports a ValueError only.
        raise ValueError("expected a model's name, or a list of names or of tables {model = …, weight = …}")  # noqa: TRY004
    found = tuple(map(_parse_weighted, rows))
    names = [each.model for each in found]
    if not names:
        raise ValueError("expected at least one model")
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ValueError(f"'{twice}' is named twice; give it a larger weight")
    return found


def _parse_weighted(row: object) -> WeightedModel:
    if isinstance(row, WeightedModel):
        return row
    table = {"model": row} if isinstance(row, str) else row
    if not isinstance(table, dict) or not set(table) <= {"model", "weight"}:
        raise ValueError(f"{row!r} is neither a model's name nor a table with model and weight")
    name, weight = table.get("model"), table.get("weight", 1.0)
    if not isinstance(name, str) or not name or name == "auto":
        raise ValueError(f"{name!r} is not the name of one of several models")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < float("inf"):
        raise ValueError(f"the weight of '{name}' is {weight!r}; expected a number above 0")
    return WeightedModel(model=name, weight=weight)


class ModelsSettings(Section):
    """Models by role, and how their providers are reached."""

    solve: str | None = None
    """The model of agents that work on tasks; default: ``model``."""
    improve: Annotated[str | tuple[WeightedModel, ...] | None, BeforeValidator(_parse_models)] = None
    """The model of agents that edit their own source; default: ``model``. A list of names, or of tables
    ``{model = "…", weight = 2}``: several models, of which one is drawn for each child."""
    diagnose: str | None = None
    """The model that reads failures; default: ``model``."""
    openai: ProviderSettings = ProviderSettings()
    anthropic: ProviderSettings = ProviderSettings()
    compatible: ProviderSettings = ProviderSettings()
    """``openai-compatible/…``; needs a ``base_url``."""
    aliases: Mapping[str, str] = {}
    """Names that agents ask for → the model that each stands for; ``default`` is the one that is lent. Names of
    the same vendor's other models need none."""
    azure: AzureSettings = AzureSettings()
    bedrock: BedrockSettings = BedrockSettings()
    vertex: VertexSettings = VertexSettings()
    requests: Mapping[str, RequestSettings] = {}
    """Model name as in ``model`` → what is left out, renamed or set in its requests."""
    prices: Mapping[str, PriceSettings] = {}
    """Model name as in ``model`` → price; wins over the shipped table."""


class SwebenchSettings(Section):
    """Benchmarks in SWE-bench's format."""

    subset: str | None = None
    """A shipped subset's name or a subset file: which instances are searched on, which are held out."""
    images: Mapping[str, str] = {}
    """Instance id, repository (``owner/name``) or ``*`` → a Docker image with the repository at ``/testbed``; wins over
    the published ones."""
    disk_gb: Positive = 120.0
    """Images of tasks beyond this are removed, the longest unused first, by ``dgm benchmark fetch``."""
    agent_s: Positive = 1800.0
    """Wall time of an agent on one instance."""
    tests_s: Positive = 1800.0
    """Wall time of an instance's tests, its build included; default as in the swebench package."""


class PolyglotSettings(Section):
    """Benchmarks in the layout of Aider's polyglot benchmark."""

    languages: tuple[Literal["cpp", "go", "java", "javascript", "python", "rust"], ...] = (
        "cpp",
        "go",
        "java",
        "javascript",
        "python",
        "rust",
    )
    """Languages whose exercises are taken."""
    attempts: Annotated[int, Field(ge=1, le=2)] = 1
    """2: a second try sees the output of the first one's tests (Aider's protocol); 1: as in arXiv:2505.22954."""
    passing_stubs: bool = False
    """Keep exercises whose stub passes untouched."""


class GradingSettings(Section):
    """Grading of patches, for every benchmark."""

    perturb: Literal["off", "resolved", "all"] = "resolved"
    """Patches that are graded once more against tests with changed expected values, which no honest patch passes;
    ``all``: also those that are unresolved, as a record of conduct only."""


class BenchmarksSettings(Section):
    """Settings of single benchmarks."""

    swebench: SwebenchSettings = SwebenchSettings()
    polyglot: PolyglotSettings = PolyglotSettings()
