"""Small texts that every list is made of: tallies, intervals, amounts, bars, marks."""

from collections.abc import Iterator, Mapping, Sequence

from dgm.domain import Tally, Usage, Verdict
from dgm.show.safe import cell_width, fit, one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.stats import wilson

BAR = 8
BEST = "★"
MARKED = "◆"
EVALUATING = "●"
EXPANDING = "✎"
WAITING = "⏸"
BARREN = "†"
UNTRIED = "·"
VERDICT_MARKS: Mapping[Verdict, str] = {
    Verdict.RESOLVED: "✓",
    Verdict.UNRESOLVED: "✗",
    Verdict.INVALID: "?",
}
VERDICT_TONES: Mapping[Verdict, Tone] = {
    Verdict.RESOLVED: Tone.GOOD,
    Verdict.UNRESOLVED: Tone.BAD,
    Verdict.INVALID: Tone.WARN,
}
OPERATOR_WIDTH = 80
SIGNIFICANT = 0.05
"""Upper limit of an exact p that is called a difference."""
AIM_WIDTH = 40
OFFLINE_NOTE = "offline model: a repair program, not a language model; scores are a demonstration"
_ROLE_WIDTH = 80


def count_text(count: int, one: str, many: str = "") -> str:
    """Return ``1 agent``, ``1,200 agents``; ``many`` is the plural where it takes more than an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def tally_text(tally: Tally) -> str:
    """Return ``5/12 42%``; a dash where nothing was evaluated."""
    return f"{tally.resolved}/{tally.n} {tally.rate:.0%}" if tally.n else "–"


def given_up_text(count: int) -> str:
    """Return ``2 tasks given up``, which stands beside a tally that does not count them; empty for none."""
    return f"{count_text(count, 'task')} given up" if count else ""


def interval_text(tally: Tally) -> str:
    """Return the 95 % Wilson interval, as ``19–68%``; empty where nothing was evaluated."""
    low, high = wilson(tally)
    return f"{low:.0%}–{high:.0%}".replace("%–", "–") if tally.n else ""


def resolved_text(tally: Tally) -> str:
    """Return ``5 of 12 (95 % interval: 19–68%)``; ``0 of 0`` where nothing was evaluated."""
    return f"{tally.resolved} of {tally.n}" + (f" (95 % interval: {interval_text(tally)})" if tally.n else "")


def list_text(items: Sequence[object], most: int) -> str:
    """Return ``1, 2, 3``, of a long list the first ``most`` and ``and 12 more``; a dash for an empty one."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown} and {len(items) - most:,} more" if len(items) > most else shown or "–"


def p_text(p: float) -> str:
    """Return ``p = 0.375``, down to ``p < 0.00001``.

    A smaller p, or one that rounding moves across 0.05, has more digits.
    """
    if p < 1e-5:
        return "p < 0.00001"
    texts = (f"{p:.{digits}f}" for digits in range(3 if p >= 0.001 else 5, 20))
    return f"p = {next(text for text in texts if (float(text) < SIGNIFICANT) == (p < SIGNIFICANT))}"


def mcnemar_text(p: float, mid_p: float) -> str:
    """Return ``exact McNemar p = 0.375 (mid-p 0.219)``."""
    return f"exact McNemar {p_text(p)} (mid-{p_text(mid_p).replace(' =', '')})"


def usage_text(usage: Usage) -> str:
    """Return ``12 model calls, 34,567 tokens, 0.0123 USD``."""
    return f"{count_text(usage.calls, 'model call')}, {usage.tokens:,} tokens, {usage.usd:.4f} USD"


def usd_text(limit: float) -> str:
    """Return a limit in USD as people write it: ``0.50``, ``12.00``, ``0.0025``."""
    return f"{limit:.2f}" if limit == round(limit, 2) else f"{limit:g}"


def usage_lines(by: Mapping[tuple[str, str], Usage], indent: str) -> Iterator[str]:
    """Yield a line for each role and model, the dearest first."""
    names = {key: one_line(" ".join(key), _ROLE_WIDTH) for key in by}
    width = max(map(cell_width, names.values()), default=0)
    for key, usage in sorted(by.items(), key=lambda item: (-item[1].usd, -item[1].tokens, item[0])):
        yield f"{indent}{fit(names[key], width)}  {usage_text(usage)}"


def bar_text(rate: float, width: int = BAR) -> str:
    """Return a small bar of ``width`` cells for a rate; below 0 and above 1 it is empty and full."""
    full = round(min(max(rate, 0.0), 1.0) * width)
    return "█" * full + "░" * (width - full)


def bar_line(rate: float) -> Line:
    """Return the bar of ``bar_text`` in the tones of its full and its empty part."""
    drawn = bar_text(rate)
    full = drawn.rstrip("░")
    return make_line(Span(full, Tone.GOOD), Span(drawn[len(full) :], Tone.DIM))


def operator_text(operator: str, aim: str) -> str:
    """Return ``module:context``; the operator alone where there was no aim."""
    name = one_line(operator, OPERATOR_WIDTH)
    return f"{name}:{one_line(aim, AIM_WIDTH)}" if aim else name


def clock_text(seconds: float) -> str:
    """Return seconds as ``4:07``, or ``1:04:07`` from an hour."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
