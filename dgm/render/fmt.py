"""The formatters: every number that a user reads, on the terminal, in the browser and in the report."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dgm.views.promotion import PromotionsView
from dgm.views.values import SIGNIFICANT, DeltaView, TallyView, UsageView

if TYPE_CHECKING:
    from dgm.views.agents import AgentRow
    from dgm.views.run import CurriculumView

DASH = "–"
BEST, FRONT = "★", "◇"
BAR_CELLS = 8
FLAG = "⚑"
"""Mark of misconduct."""
VERDICT_MARKS = {"resolved": "✓", "unresolved": "✗", "invalid": "?"}
STATE_MARKS = {"waiting": "⏸", "expanding": "✎", "evaluating": "●", "barren": "†", "idle": ""}
"""Marks of an agent's state."""
BEST_MEANS = "recommended by the policy; lower bound: 99 % sure that its rate is higher"
_UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
_YEAR_S = 366 * 86_400


def count(number: float, singular: str, plural: str = "") -> str:
    """Return ``1 agent``, ``1,200 agents``; ``plural`` is for nouns that take more than an s."""
    return f"{number:,g} {singular}" if number == 1 else f"{number:,.0f} {plural or singular + 's'}"


def money(usd: float) -> str:
    """Return ``12.00 USD``; four decimals for fractions of a cent below 1 USD."""
    digits = 2 if usd >= 1 or f"{usd:.4f}".endswith("00") else 4
    return f"{usd:,.{digits}f} USD"


def money_of(used: float, limit: float) -> str:
    """Return ``3.20 of 20.00 USD``."""
    return f"{money(used).removesuffix(' USD')} of {money(limit)}"


def usage(used: UsageView) -> str:
    """Return ``12 model calls, 34,567 tokens, 0.0123 USD``."""
    return f"{count(used.calls, 'model call')}, {count(used.tokens, 'token')}, {money(used.usd)}"


def spend(used: UsageView) -> str:
    """Return the money, or the tokens if nothing cost money."""
    return money(used.usd) if used.usd else count(used.tokens, "token")


def short_number(value: float) -> str:
    """Return a number as ``0.05``, ``250``, ``1.5k``, ``2M``."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.1f}".removesuffix(".0") + letter
    return f"{value:.4g}"


def size(size_bytes: int) -> str:
    """Return ``12 kB``, ``3.4 MB``, ``1.2 GB``."""
    for unit_bytes, unit in ((1e9, "GB"), (1e6, "MB")):
        if size_bytes >= unit_bytes:
            return f"{size_bytes / unit_bytes:.1f} {unit}"
    return f"{size_bytes / 1e3:.0f} kB"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units: ``33 s``, ``1 min 12 s``, ``5 h 27 min``, ``3 d 4 h``."""
    whole = max(0, round(seconds))
    if whole > _YEAR_S:
        return "more than a year"
    for unit_s, unit, smaller_s, smaller in _UNITS:
        if whole >= unit_s:
            rest = whole % unit_s // smaller_s
            return f"{whole // unit_s} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def age(seconds: float) -> str:
    """Return a duration in one unit: ``40 s``, ``5 min``, ``3 h``, ``2 d``."""
    for unit_s, unit, _, _ in _UNITS:
        if seconds >= unit_s:
            return f"{seconds // unit_s:.0f} {unit}"
    return f"{max(seconds, 0.0):.0f} s"


def clock(at: float, now: float) -> str:
    """Return Unix time as local time: ``14:03:22``, with the date unless it is today's."""
    then, today = time.localtime(at), time.localtime(now)
    same_day = (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M", then)


def timestamp(at: float) -> str:
    """Return Unix time as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def percent(rate: float) -> str:
    """Return ``42%``."""
    return f"{rate:.0%}"


def tally(counts: TallyView) -> str:
    """Return ``5/12 42%``; a dash if nothing was evaluated."""
    return f"{counts.resolved}/{counts.n} {counts.rate:.0%}" if counts.n else DASH


def interval(ends: tuple[float, float]) -> str:
    """Return an interval of rates: ``19–68%``."""
    return f"{ends[0]:.0%}–{ends[1]:.0%}".replace("%–", "–")


def tally_interval(counts: TallyView) -> str:
    """Return ``5/12 42% [19–68%]``."""
    return f"{tally(counts)} [{interval(counts.interval)}]" if counts.n else DASH


def points(difference: float) -> str:
    """Return a difference of rates in percentage points: ``+3.1``."""
    return f"{100 * difference:+.1f}"


def clade_gain(row: "AgentRow", *, in_full: bool = False) -> str:
    """Return a clade's gain per expansion, and their number: ``+3.1 points in 12``; empty if there are none."""
    if row.clade_gain is None:
        return ""
    expansions = count(row.clade_expansions, "expansion") if in_full else row.clade_expansions
    return f"{points(round(row.clade_gain, 3) + 0.0)} points in {expansions}"


def gain(ends: Sequence[float]) -> str:
    """Return ``+12.0 to +61.5 points (confidence sequence)``."""
    return f"{points(ends[0])} to {points(ends[1])} points (confidence sequence)"


def promotions(view: PromotionsView) -> str:
    """Return ``agent 7 is certified: 1 promotion in 3 rounds, the chance of any false one is at most 0.05``."""
    certified = (
        "no agent is certified yet" if view.certified is None else f"agent {view.certified} is certified"
    )
    rounds = f"{count(view.promotions, 'promotion')} in {count(view.rounds, 'round')}"
    unfinished = f"; round {view.rounds} is not finished" if view.open else ""
    return f"{certified}: {rounds}, the chance of any false one is at most {view.alpha:.3g}{unfinished}"


def delta(difference: DeltaView | None) -> str:
    """Return ``+25 [-3, +49] on 12 tasks``, in percentage points; a dash without common tasks."""
    if difference is None:
        return DASH
    low, high = (f"{100 * end:+.0f}" for end in difference.interval)
    return f"{100 * difference.difference:+.0f} [{low}, {high}] on {count(difference.tasks, 'task')}"


def p_value(p: float) -> str:
    """Return ``p = 0.375``, down to ``p < 0.00001``; a p that rounding moves across 0.05 has more digits."""
    if p < 1e-5:
        return "p < 0.00001"
    texts = (f"{p:.{digits}f}" for digits in range(3 if p >= 0.001 else 5, 20))
    return f"p = {next(text for text in texts if (float(text) < SIGNIFICANT) == (p < SIGNIFICANT))}"


def bar(rate: float, cells: int = BAR_CELLS) -> str:
    """Return a bar for a rate from 0 to 1."""
    full = round(min(max(rate, 0.0), 1.0) * cells)
    return "█" * full + "░" * (cells - full)


def listing(items: Sequence[object], most: int) -> str:
    """Return ``1, 2, 3 and 12 more``; a dash for an empty list."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown} and {len(items) - most:,} more" if len(items) > most else shown or DASH


def use_of_limit(name: str, used: float, limit: float) -> str:
    """Return the use of a limit of the budget: ``94 of 160 evaluations``, ``3.20 of 20.00 USD``."""
    match name:
        case "usd":
            return money_of(used, limit)
        case "seconds":
            return f"{duration(used)} of {duration(limit)}"
        case _:
            return f"{used:,.0f} of {limit:,.0f} {name}"


def curriculum(view: "CurriculumView") -> str:
    """Return how many search tasks are in each state of a curriculum."""
    counts = f"{len(view.active)} active, {len(view.pool)} in the pool, {len(view.retired)} retired"
    return f"{counts}; plain rates of agents do not compare" if view.changes > 1 else counts
