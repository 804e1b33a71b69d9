"""The values that views share: a tally with its interval, a difference, and the usage of model calls."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from dgm.archive.tree import Tree
from dgm.domain import AgentId, Tally, Usage
from dgm.stats import matched_interval, wilson

OFFLINE_NOTE = "offline model: a repair program, not a language model; scores are a demonstration"
SIGNIFICANT = 0.05
"""Upper limit of an exact p-value that counts as a difference."""
FEW_ATTEMPTS = 5
"""A difference on fewer tasks than this is mostly luck; renderers dim it."""


class View(BaseModel):
    """An immutable model. ``model_dump_json(indent=2)`` is what ``--json`` prints."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class TallyView(View):
    """Counts of verdicts, and the rate behind them."""

    resolved: int
    unresolved: int
    n: int
    """Verdicts that count: resolved + unresolved."""
    rate: float
    """resolved / n; 0 if n is 0."""
    interval: tuple[float, float]
    """95 % Wilson interval of the rate; (0, 1) if n is 0."""

    @classmethod
    def of(cls, tally: Tally) -> Self:
        """Return the view of a tally."""
        return cls(
            resolved=tally.resolved,
            unresolved=tally.unresolved,
            n=tally.n,
            rate=tally.rate,
            interval=wilson(tally),
        )


class DeltaView(View):
    """The difference between two agents' rates on the tasks that both attempted."""

    tasks: int
    """Tasks with a verdict on both agents, at least 1."""
    difference: float
    """The agent's rate minus the other's, from -1 to 1."""
    interval: tuple[float, float]
    """95 % interval of the difference (Agresti and Min 2005)."""
    few: bool
    """Whether there are fewer than ``FEW_ATTEMPTS`` tasks."""

    @classmethod
    def between(cls, tree: Tree, other: AgentId, agent: AgentId) -> Self | None:
        """Compare first attempts; None if the agents have no graded task in common."""
        before = tree.verdicts(other)
        differences = [
            (verdict == "resolved") - (before[task] == "resolved")
            for task, verdict in tree.verdicts(agent).items()
            if verdict is not None and before.get(task) is not None
        ]
        if not differences:
            return None
        return cls(
            tasks=len(differences),
            difference=sum(differences) / len(differences),
            interval=matched_interval(differences),
            few=len(differences) < FEW_ATTEMPTS,
        )


class UsageView(View):
    """Usage of model calls."""

    calls: int
    input_tokens: int
    """Includes cached tokens."""
    output_tokens: int
    """Includes reasoning tokens."""
    tokens: int
    """Input and output tokens together."""
    usd: float
    cached_tokens: int
    """Input tokens read from the provider's cache."""
    written_tokens: int
    """Input tokens written to the provider's cache."""
    reasoning_tokens: int
    """Output tokens used for reasoning."""
    cached_share: float
    """Share of the input tokens that came from the provider's cache, from 0 to 1."""

    @classmethod
    def of(cls, usage: Usage, **more: Any) -> Self:  # noqa: ANN401  (fields of a subclass)
        """Return the view of a usage; a subclass has more fields."""
        values: dict[str, Any] = {
            "calls": usage.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "tokens": usage.tokens,
            "usd": usage.usd,
            "cached_tokens": usage.cached_tokens,
            "written_tokens": usage.written_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "cached_share": usage.cached_tokens / usage.input_tokens if usage.input_tokens else 0.0,
        }
        return cls(**values, **more)


class RoleUsage(UsageView):
    """Usage of one model in one role."""

    role: str
    """``solve``, ``improve``, ``diagnose`` or ``check``."""
    model: str


class SpendView(UsageView):
    """Usage with its parts by role and model."""

    by: tuple[RoleUsage, ...]
    """The most expensive part comes first."""

    @classmethod
    def by_role(cls, by: Mapping[tuple[str, str], Usage]) -> Self:
        """Sum the usage of each role and model."""
        return cls.of(sum(by.values(), Usage()), by=role_usages(by))


def role_usages(by: Mapping[tuple[str, str], Usage]) -> tuple[RoleUsage, ...]:
    """Return the usage of each role and model, the most expensive first."""
    most_expensive = sorted(by.items(), key=lambda item: (-item[1].usd, -item[1].tokens, item[0]))
    return tuple(RoleUsage.of(usage, role=role, model=model) for (role, model), usage in most_expensive)
