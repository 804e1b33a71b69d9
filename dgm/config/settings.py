"""All settings of a run, section by section. The string under a field is its documentation.

``dgm.config.listing`` reads these strings from the source: pydantic would do so at each start of the program.
"""

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    FieldSerializationInfo,
    Tag,
    field_serializer,
    field_validator,
    model_validator,
)

from dgm.domain import Budget

MOST = 1e9
"""A bound that only a mistake or a hostile file exceeds; it keeps times below what timers take (31 years)."""
Count = Annotated[int, Field(ge=1, le=10**15)]
Positive = Annotated[float, Field(gt=0, le=MOST)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A frozen record; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
    expansion_cost: Amount = 0.0
    """Evaluations of the budget that one expansion takes; 0: only evaluations count, as in arXiv:2510.21614."""
    until_score: Annotated[float, Field(gt=0, lt=1)] | None = None
    """End when the lower bound of the best agent's rate on the search tasks reaches this share, such as 0.6."""
    patience: Count | None = None
    """End when no better agent was recommended in this many graded evaluations (``docs/long-runs.md``)."""
    confirm_above_usd: Amount | None = None
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
    """A built-in policy, such as ``hgm``, or the name of an installed plug-in, or ``module:function`` of
    your own."""
    gate: str | None = None
    """Policy that decides whether to expand or evaluate; default: the named one. So with each of the following."""
    parent: str | None = None
    """Policy that chooses the parent of the next child."""
    evaluation: str | None = None
    """Policy that chooses the agent to evaluate."""
    task: str | None = None
    """Policy that chooses the task of an evaluation."""
    recommendation: str | None = None
    """Rule that chooses the best agent."""
    reward: Literal["resolved", "score", "objective"] = "resolved"
    """The reward of an evaluation for ``hgm`` and ``lineage``: 1 if resolved; its score; or the weighted sum of
    ``objective.weights``, clipped to [0, 1]."""
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
    agent_bytes: Count = 4_000_000
    """A larger scaffold is stillborn."""
    agent_files: Count = 500
    """A scaffold with more files is stillborn."""
    tries: Count = 5
    """An action that the infrastructure failed this often, while others went well, is given up."""
    failures_in_a_row: Count = 20
    """After this many infrastructure failures with no success between, the run pauses while the model's provider does
    not answer, and stops with a message where it does."""
    stillborn_in_a_row: Annotated[int, Field(ge=0)] = 11
    """After this many stillborn children of one cause in a row, none born between, the session ends with a message; 0:
    it never does. What counts as one cause: ``docs/policies.md``."""
    pause_s: Positive = 30.0
    """Seconds between the checks of a paused run whether the provider answers again; each is one small, paid call."""

    def solve_limit_s(self, task_s: float) -> float:
        """Return the wall time, in seconds, of an agent at a task that gives it ``task_s``."""
        return (task_s if self.solve_s is None else self.solve_s) * self.time_factor

    @property
    def improve_limit_s(self) -> float:
        """The wall time, in seconds, of an agent that edits its own source."""
        return self.improve_s * self.time_factor


Kind = Literal["openai", "anthropic", "openai-compatible", "azure", "bedrock", "vertex"]
KINDS: tuple[str, ...] = get_args(Kind)


class ProviderSettings(Section):
    """Connection to a provider, whose NAME stands before the slash in the names of its models.

    ``openai``, ``anthropic``, ``openai-compatible``, ``azure``, ``bedrock`` and ``vertex`` need no ``kind``.
    """

    kind: Kind | None = None
    """What the provider is; must be given where NAME is a name of your own."""
    base_url: str | None = None
    """Address of the API; default: the provider's own, or what its own environment variable says."""
    key_env: str | None = None
    """Environment variable that holds the key; default ``OPENAI_API_KEY`` or ``ANTHROPIC_API_KEY``. Keys themselves
    are never settings."""
    api: Literal["responses", "chat", "messages"] | None = None
    """The protocol. Default at OpenAI: the agent's own, ``chat`` or ``responses``; at Azure, Bedrock and Vertex: by the
    model's name. Anthropic is always asked by ``messages``, a compatible server by ``chat``."""
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] | None = None
    """Bedrock, such as ``us-east-1``, default: ``AWS_REGION``, else the profile's; Vertex, such as ``europe-west1`` or
    ``global``, default: ``GOOGLE_CLOUD_LOCATION``."""
    project: str | None = None
    """Vertex: id of the project; default: ``GOOGLE_CLOUD_PROJECT``."""
    concurrency: Count = 16
    """Calls at once, of all workers; fewer after the provider has said that it is too many."""
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
    reasoning_effort: Annotated[str, Field(pattern=r"^[a-z]+$")] | None = None
    """Put into requests that name none: ``low``, ``medium``, ``high`` …, as the provider calls them."""
    extra_headers: Mapping[str, str] = {}
    """Sent with every request. ``env:NAME`` is read from the environment and kept secret, as keys are."""
    extra_body: Mapping[str, Any] = {}
    """Merged into the body of every request, over what it holds; ``env:NAME`` as in ``extra_headers``."""


class PriceSettings(Section):
    """Price of a model, in USD per million tokens; 0 is a price."""

    input: Amount
    """Input that no cache held."""
    output: Amount
    """Output, reasoning included."""
    cached_input: Amount | None = None
    """Input that the provider's cache held; default: as ``input``."""
    cache_write: Amount | None = None
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

    model: Annotated[str, Field(min_length=1)]
    """Its full name."""
    weight: Positive = 1.0
    """Models are drawn in proportion to their weights."""


def _read_models(value: object) -> object:
    """Return names, and tables of weights by name, as a list of tables with ``model`` and ``weight``."""
    if isinstance(value, Mapping):
        return tuple({"model": name, "weight": weight} for name, weight in value.items())
    if isinstance(value, list | tuple):
        return tuple({"model": row} if isinstance(row, str) else row for row in value)
    return value


def _refuse_twice(rows: tuple[WeightedModel, ...]) -> tuple[WeightedModel, ...]:
    names = [row.model for row in rows]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ValueError(f"'{twice}' is named twice; give it a larger weight")
    return rows


OneModel = Annotated[str, Tag("name")]
SeveralModels = Annotated[
    tuple[WeightedModel, ...], Field(min_length=1), AfterValidator(_refuse_twice), Tag("list")
]


class ModelsSettings(Section):
    """Models by role, their names, requests and prices."""

    solve: str | None = None
    """The model of agents that work on tasks; default: ``model``."""
    improve: (
        Annotated[
            OneModel | SeveralModels,
            Discriminator(lambda value: "name" if isinstance(value, str) else "list"),
            BeforeValidator(_read_models),
        ]
        | None
    ) = None
    """The model of agents that edit their own source; default: ``model``. A list of names, or of tables
    ``{model = "…", weight = 2}``: several models, of which one is drawn for each child."""
    diagnose: str | None = None
    """The model that reads failures; default: ``model``."""
    aliases: Mapping[str, str] = {}
    """Names that agents ask for → the model that each stands for; ``default`` is the one that is lent. Names of
    the same vendor's other models need none."""
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


class HarborSettings(Section):
    """Benchmarks in the layout of Harbor."""

    image: str = ""
    """Recipe in which agents work instead of the tasks' own images, such as ``python``; needs no Docker. Empty: their
    own."""


class GradingSettings(Section):
    """Grading of patches, for every benchmark."""

    perturb: Literal["off", "resolved", "all"] = "resolved"
    """Patches that are graded once more against tests with changed expected values, which no honest patch passes;
    ``all``: also those that are unresolved, as a record of conduct only."""


class BenchmarksSettings(Section):
    """Settings of single benchmarks."""

    swebench: SwebenchSettings = SwebenchSettings()
    polyglot: PolyglotSettings = PolyglotSettings()
    harbor: HarborSettings = HarborSettings()


class OperatorSettings(Section):
    """Choice of the operator that makes the next child, where ``operator`` names several, and its retries."""

    choice: Literal["fixed", "bandit"] = "fixed"
    """fixed: by ``weights``; bandit: by what each one's children were worth per unit of spend."""
    weights: Mapping[str, Positive] = {}
    """Operator → how often it is chosen, relative to the others, at most 1e9; 1 where it is not named."""
    promises: bool = False
    """True: the bandit expects more of operators that keep their predictions; no simulation shows that it helps."""
    parts: Literal["round-robin", "bandit"] = "round-robin"
    """Order in which ``module`` takes the parts of the scaffold."""
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    """Further questions to a model whose answer cannot be read."""
    reflections: Annotated[int, Field(ge=0, le=2)] = 2
    """Reviews of a draft by its author, with ``invent``."""
    debugging: Annotated[int, Field(ge=0, le=3)] = 3
    """Repairs of a draft that does not start, with ``invent``."""


class EvidenceSettings(Section):
    """Evidence of an agent's own work, and of others', shown when a child is made."""

    failures: Annotated[int, Field(ge=0)] = 6
    """Unresolved evaluations shown."""
    successes: Annotated[int, Field(ge=0)] = 1
    """Resolved evaluations shown."""
    ancestors: Annotated[int, Field(ge=0, le=50)] = 3
    """Ancestors shown, the nearest ones."""
    others: Annotated[int, Field(ge=0, le=50)] = 3
    """Further agents shown."""
    folder_bytes: Count = 8_000_000
    """Maximum size of the whole folder; its index names what is left out."""
    prompt_chars: Count = 60_000
    """Maximum length of the evidence that an operator puts into one prompt."""


class VettingSettings(Section):
    """Further checks that a child must pass."""

    patch: bool = True
    """Its change must go on as a patch."""
    syntax: bool = True
    """Its source must differ from every agent's in more than comments, docstrings and layout."""
    probes: Annotated[int, Field(ge=0, le=10)] = 2
    """Tasks that its parents have always solved; a child that solves none of them is stillborn."""


class ConductSettings(Section):
    """Consequences for evaluations and children in which cheating was found."""

    on_misconduct: Literal["flag", "reject"] = "flag"
    """flag: findings are recorded, shown, and left out of evidence; reject: such an evaluation is also unresolved, and
    such a child stillborn."""


class GateSettings(Section):
    """Rules that keep a child out, or let it wait for a person."""

    flips: bool = False
    """An agent that lost more of its parents' resolved tasks than it gained has no children."""
    novelty: Literal["off", "similarity", "model"] = "off"
    """Make a child stillborn whose edit is a near copy of another's, by a measure of similarity or by a model that is
    asked about similar edits."""
    novelty_threshold: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Similarity from which two edits count as copies, above 0 up to 1."""
    approve: bool = False
    """Every child waits until a person has said yes or no to it, while the search goes on."""
    approve_s: Positive | None = None
    """Seconds that it waits; default: until a person answers."""
    on_timeout: Literal["reject", "accept"] | None = None
    """Decision on a child that nobody answered for; default: reject."""


class ScaleSettings(Section):
    """Sandboxes on the nodes of a Ray cluster."""

    node_engine: Literal["auto", "docker", "bubblewrap"] = "auto"
    """The engine that opens sandboxes on each node; auto = docker, else bubblewrap."""
    wait_s: Positive = 3600.0
    """Maximum seconds that a sandbox waits for a node with room."""


class MiningSettings(Section):
    """Choices of ``dgm benchmark mine`` beside its options; no run records them."""

    since: Annotated[str, Field(pattern=r"^(\d{4}-\d{2}-\d{2})?$")] = ""
    """Earliest day of the history, such as 2024-01-31; empty: all of it."""
    language: Literal["python", "javascript", "go", "rust", "cpp", "jvm"] | None = None
    """Language that is mined; default: the one of most test files."""
    image: Annotated[str, Field(pattern=r"^(docker:.+)?$")] = ""
    """Docker image for tests, such as docker:python:3.12; empty: the language's recipe."""
    reports: tuple[str, ...] = ()
    """Patterns of the JUnit reports that the test command writes; C++ and the JVM only."""
    holdout: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Share of the tasks from the history, the newest, that is kept for reports."""
    issues: str = ""
    """File with texts of issues, as ``gh issue list --json number,title,body`` writes it."""
    processor_hours: Positive | None = None
    """Processor time of a session after which nothing new begins."""
    seed: int = 0
    """Random seed of the choice of faults."""


class PromotionSettings(Section):
    """Rounds of promotion: which agents are certified to be better than the one before (``docs/results.md``)."""

    alpha: Annotated[float, Field(ge=1e-6, lt=1)] = 0.05
    """Bound on the probability that any promotion of the run is false."""
    candidates: Annotated[int, Field(ge=1, le=100)] = 1
    """Agents that are compared with the certified one in a round, at most; more make each test stricter."""
    every: Annotated[int, Field(ge=0)] = 0
    """Graded evaluations of the search between rounds; 0: only ``dgm promote`` performs them."""


class CurriculumSettings(Section):
    """Search tasks that keep up with the agents (``docs/policies.md``)."""

    start: Annotated[int, Field(ge=3)] | None = None
    """Active search tasks, drawn by the seed; the others wait in a pool. Default: all tasks, and no curriculum."""
    agents: Annotated[int, Field(ge=2)] = 5
    """A task leaves the active ones when this many agents with verdicts on it, the youngest, all agree."""


class ObjectiveSettings(Section):
    """Metrics that compare agents, beside the share of resolved tasks (``docs/results.md``)."""

    cheapest: Literal["usd", "tokens", "seconds"] | None = None
    """Cost by which the cheapest agent is found that is not worse than the best; default: usd if the evaluations cost
    any, else tokens."""
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Loss of rate that still counts as not worse: 0.1 is ten points."""
    front: tuple[str, ...] = ()
    """Metrics of a Pareto front, at least two, such as ``["rate", "tokens"]``: agents that no other beats in all of
    them are marked, and ``crossover`` takes its second parent among them."""
    weights: Mapping[str, Annotated[float, Field(allow_inf_nan=False)]] = {}
    """Metric → its weight in the sum ``objective``, such as ``{rate = 1.0, tokens = -1e-6}``."""
    rubric: bool = False
    """Let the model of the role ``diagnose`` judge each evaluation by your notes: the metric ``rubric``, from 0
    to 1. An agent can flatter it."""


class SinksSettings(Section):
    """Programs that follow a search. They hold for one session; no run records them."""

    to: tuple[str, ...] = ()
    """Addresses of trackers: ``mlflow:…``, ``wandb:…``, ``tensorboard:FOLDER``, ``otlp:…``; ``env:NAME`` is read from
    the environment (``docs/connect.md``)."""


NoticeKind = Literal["end", "pause", "continue", "budget", "best", "certified", "interrupted"]


class NotifySettings(Section):
    """Notifications of a search. They hold for one session; no run records them."""

    to: tuple[str, ...] = ()
    """Addresses that ``apprise`` knows, such as ``ntfy://TOPIC``; ``env:NAME`` is read from the environment
    (``docs/watch.md``)."""
    on_event: Annotated[str, Field(min_length=1)] | None = None
    """Command that is run at each event, without a shell; it reads the event as JSON."""
    events: tuple[NoticeKind, ...] = get_args(NoticeKind)
    """Events that are notified."""


class Settings(Section):
    """Everything that decides what a run does."""

    benchmark: str = "starter"
    """A suite's name under ``benchmarks/`` or the path of a suite's folder; ``swebench:`` and a data set's name or
    file; ``polyglot:`` and a folder or git URL; several of these joined by ``+``."""
    model: str = "auto"
    """The model that agents are lent: ``openai/…``, ``anthropic/…``, ``openai-compatible/…``, ``offline``,
    ``scripted:FILE``, the name of an installed plug-in; ``auto`` chooses and says why."""
    operator: str = "self-edit"
    """Operator that makes a child; of several joined by ``+``, one is chosen for each child."""
    sandbox: Annotated[str, Field(min_length=1)] = "auto"
    """Where agents run: ``docker``, ``bubblewrap``, ``ray`` or the name of an installed plug-in; auto = docker, else
    bubblewrap."""
    workers: Annotated[int, Field(ge=1, le=4096)] = 2
    """Actions at once."""
    seed: int = 0
    """Every decision is a function of the log and this number."""
    seed_agent: str | tuple[str, ...] | None = None
    """Name of a shipped agent, such as ``codeact``, or a folder or git repository with an ``agent.toml``; a list makes
    the search start from several; default: ``plain`` for the offline model, else ``solid``."""
    policy: PolicySettings = PolicySettings()
    budget: BudgetSettings = BudgetSettings()
    limits: LimitSettings = LimitSettings()
    operators: OperatorSettings = OperatorSettings()
    evidence: EvidenceSettings = EvidenceSettings()
    vetting: VettingSettings = VettingSettings()
    gates: GateSettings = GateSettings()
    conduct: ConductSettings = ConductSettings()
    models: ModelsSettings = ModelsSettings()
    providers: Mapping[str, ProviderSettings] = {}
    benchmarks: BenchmarksSettings = BenchmarksSettings()
    grading: GradingSettings = GradingSettings()
    scale: ScaleSettings = ScaleSettings()
    promotion: PromotionSettings = PromotionSettings()
    curriculum: CurriculumSettings = CurriculumSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    # Excluded: addresses may hold tokens, and a run is recorded and published without them.
    sinks: SinksSettings = Field(default=SinksSettings(), exclude=True)
    notify: NotifySettings = Field(default=NotifySettings(), exclude=True)

    @field_validator("seed_agent")
    @classmethod
    def _refuse_nameless_seeds(cls, agents: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        if agents is not None and (not agents or ("" in agents and not isinstance(agents, str))):
            raise ValueError("name an agent, a folder or a git repository, or leave the setting out")
        return agents

    @field_validator("providers")
    @classmethod
    def _check_kinds(cls, providers: Mapping[str, ProviderSettings]) -> Mapping[str, ProviderSettings]:
        for name, provider in providers.items():
            if name in KINDS and provider.kind not in (None, name):
                raise ValueError(f"'{name}' is its own kind; use a name of your own for another one")
            if name not in KINDS and provider.kind is None:
                near = difflib.get_close_matches(name, KINDS, 1)
                hint = f"did you mean '{near[0]}'? " if near else ""
                raise ValueError(
                    f"'{name}' is no provider ({hint}one of your own needs a kind: {', '.join(KINDS)})"
                )
        return providers

    @field_serializer("providers")
    def _keep_what_is_set(
        self, providers: Mapping[str, ProviderSettings], info: FieldSerializationInfo
    ) -> dict[str, Any]:
        """Freeze what was said of a provider, and not all that may be."""
        return {
            name: one.model_dump(mode=str(info.mode), exclude_unset=True) for name, one in providers.items()
        }

    @property
    def operator_names(self) -> tuple[str, ...]:
        """The operators that ``operator`` names, in its order."""
        return tuple(name.strip() for name in self.operator.split("+"))
