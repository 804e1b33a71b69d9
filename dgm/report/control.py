"""Sentences about the control of equal spend: the seed with the attempts that the search's spend would have bought."""

import shlex
from collections.abc import Sequence
from typing import Any

from dgm.analysis.summary import spend_record, tally_record
from dgm.evaluation.control import ControlFindings, Unit
from dgm.report.drawing import short
from dgm.show.safe import one_line
from dgm.show.words import mcnemar_text


def sentences(found: ControlFindings, *, offline: bool) -> Sequence[str]:
    """Return the sentences that explain the control and give its result.

    Args:
        found: the control.
        offline: whether the offline model answered.
    """
    price, pairs = found.price, found.pairs
    spent, bought = amount(price.search, price.unit), _attempts(price.affordable)
    took = amount(found.took, price.unit)
    bound = f", of which it was given at most {found.bound}" if found.wanted < price.affordable else ""
    n, gained, lost = pairs.first.n, len(pairs.gained), len(pairs.lost)
    what = (
        f"Control of equal spend: for the {spent} that the search took, the seed could have had {bought} at each "
        f"holdout task{bound}. No task is tried again once it is solved, so the further attempts took {took}."
    )
    seed = (
        f"With {_attempts(found.attempts)} at each it resolves {pairs.first.resolved} of {n} tasks, as if somebody "
        f"picked the right attempt each time; with one, {found.once.resolved} of {found.once.n}."
    )
    best = (
        f"The best agent, with one attempt, resolves {pairs.second.resolved} of {n}: {gained} that the control does "
        f"not, and not {lost} that it does; {mcnemar_text(pairs.p, pairs.mid_p)}. This is a description; whether the "
        "best agent is better than the seed rests on those two alone."
    )
    said = [what, seed, best]
    if found.missing:
        said.append(
            f"The control is not complete: every task has had {found.attempts} of {_attempts(found.wanted)}, and up to "
            f"{found.missing:,} more can be made."
        )
    if offline:
        said.append("Attempts of the offline model are not independent: equal requests have equal answers.")
    return said


def absent(run: str) -> str:
    """Return the sentence for a control that nobody asked for yet; ``run`` is the name of the run."""
    return f"The control of equal spend was not performed ({examining(run)} does it)."


def examining(run: str) -> str:
    """Return the shell command that begins or continues the examination of the run's best agent."""
    return f"dgm report {shlex.quote(one_line(run, 100))} --holdout"


def record(found: ControlFindings) -> dict[str, Any]:
    """Return the control for programs."""
    price, pairs = found.price, found.pairs
    return {
        "unit": price.unit.value,
        "search": round(price.search, 6),
        "attempt": round(price.attempt, 6),
        "affordable": price.affordable,
        "bound": found.bound,
        "attempts": found.attempts,
        "missing": found.missing,
        "seed_once": tally_record(found.once),
        "seed_any": tally_record(pairs.first),
        "best": tally_record(pairs.second),
        "gained": list(pairs.gained),
        "lost": list(pairs.lost),
        "mcnemar_p": pairs.p,
        "mcnemar_mid_p": pairs.mid_p,
        "took": round(found.took, 6),
        "spend": spend_record(found.spend),
    }


def amount(value: float, unit: Unit) -> str:
    """Return ``1.23 USD``, ``9.7M tokens``, ``2.5 hours of work``."""
    match unit:
        case Unit.USD:
            return f"{value:.2f} USD" if value >= 0.01 else f"{value:.4f} USD"
        case Unit.TOKENS:
            return f"{short(value)} tokens"
        case Unit.SECONDS:
            return f"{value / 3600:.1f} hours of work" if value >= 3600 else f"{value:.0f} seconds of work"


def _attempts(count: int) -> str:
    return "1 attempt" if count == 1 else f"{count:,} attempts"
