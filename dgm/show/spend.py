"""The spend of a run and its agents, and the requests that the gateway refused."""

from collections.abc import Collection, Sequence

from dgm.analysis.accounts import AgentAccount, Purpose, RefusedRequest
from dgm.analysis.summary import cached_input_share
from dgm.archive.tree import Tree
from dgm.domain import ActionId, Usage
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import usage_lines, usage_text, usd_text

REFUSALS = 10
"""Maximum number of different refusals that people are shown."""
_PURPOSES = {
    Purpose.MAKING: "making it",
    Purpose.EVALUATING: "evaluating it",
    Purpose.STILLBORN: "stillborn children",
    Purpose.UNFINISHED: "unfinished children",
}
_WIDTH = 19


def spend_lines(tree: Tree) -> Sequence[Line]:
    """Return the spend of the run and its limit; by role and model where there are several."""
    spend, by, limit = tree.spend, tree.spend_by, tree.budget.usd
    of_limit = "" if limit is None else f" of {usd_text(limit)} USD, {max(0.0, limit - spend.usd):.4f} left"
    text = usage_text(spend)
    total = f"{text.removesuffix(' USD') if of_limit else text}{of_limit}{_cached_text(spend)}"
    finer = [make_line(each) for each in usage_lines(by, " " * 15)] if len(by) > 1 else []
    return [make_line(Span(f"{'spend':<13}", Tone.KEY), total), *finer]


def account_lines(account: AgentAccount, clade: Usage | None = None) -> Sequence[Line]:
    """Return the spend of an agent by purpose.

    Args:
        account: its own.
        clade: the spend of the agent and all its descendants; None if nobody has counted it.
    """
    rows = [(_PURPOSES[purpose], account.of(purpose)) for purpose in Purpose]
    if clade is not None:
        rows.append(("its clade in all", clade))
    heading = make_line(Span("spend:", Tone.STRONG))
    return [
        heading,
        *(make_line(Span(f"  {name:<{_WIDTH}} ", Tone.KEY), usage_text(usage)) for name, usage in rows),
    ]


def refusal_lines(refusals: Sequence[RefusedRequest], most: int | None = REFUSALS) -> Sequence[Line]:
    """Return what the gateway refused or left out, the most frequent first; empty where all passed whole."""
    shown = [
        make_line(
            Span(f"  {each.times} times ", Tone.WARN),
            one_line(f"{each.code}: {each.message}", 150),
        )
        for each in refusals[:most]
    ]
    left = len(refusals) - len(shown)
    heading = [make_line(Span("refused or left out by the gateway:", Tone.STRONG))] if shown else []
    return [*heading, *shown, *([make_line(f"  and {left} more")] if left else [])]


def fruitless_lines(account: AgentAccount, evaluations: Collection[ActionId]) -> Sequence[Line]:
    """Return the payments for actions that gave neither the agent nor a verdict on it; empty without any."""
    lines = [
        make_line(f"  action {each.action:<6} {each.purpose:<10}  {usage_text(each.usage)}")
        for each in account.lines
        if each.by and each.purpose is not Purpose.MAKING and each.action not in evaluations
    ]
    return [make_line(Span("paid for without a result (yet):", Tone.STRONG)), *lines] if lines else []


def _cached_text(usage: Usage) -> str:
    return f" ({cached_input_share(usage):.0%} of the input was cached)" if usage.cached_tokens else ""
