"""Sentences about the control of equal spend: the seed with the attempts that the search's spend would have bought."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.analysis.summary import spend_record, tally_record
from dgm.evaluation.control import ControlFindings, Unit
from dgm.models.choose import BUILTIN
from dgm.report.drawing import short_number
from dgm.show.safe import one_line
from dgm.show.words import count_text, mcnemar_text


def control_sentences(found: ControlFindings | None, run: str, models: Mapping[str, str]) -> Sequence[str]:
    """Return the sentences that explain the control and give its result, or the command that performs it.

    Args:
        found: the control; None if it was not performed.
        run: name of the run.
        models: role → name of its model.
    """
    repeating = models["solve"] in BUILTIN
    if found is None:
        more = f"The control of equal spend was not performed ({exam_command(run)} --control does it)."
        return [] if repeating else [more]
    price, pairs = found.price, found.pairs
    spent, bought = amount_text(price.search, price.unit), count_text(price.affordable, "attempt")
    took = amount_text(found.took, price.unit)
    bound = f", of which it was given at most {found.bound}" if found.wanted < price.affordable else ""
    n, gained, lost = pairs.first.n, len(pairs.gained), len(pairs.lost)
    what = (
        f"Control of equal spend: for the {spent} that the search took, the seed could have had {bought} at each "
        f"holdout task{bound}. No task is tried again once it is solved, so the further attempts took {took}."
    )
    seed = (
        f"With {count_text(found.attempts, 'attempt')} at each it resolves {pairs.first.resolved} of {n} tasks, as if "
        f"somebody picked the right attempt each time; with one, {found.once.resolved} of {found.once.n}."
    )
    best = (
        f"The best agent, with one attempt, resolves {pairs.second.resolved} of {n}: {gained} that the control does "
        f"not, and not {lost} that it does; {mcnemar_text(pairs.p, pairs.mid_p)}. This is a description; whether the "
        "best agent is better than the seed rests on those two alone."
    )
    said = [what, seed, best]
    if found.missing:
        said.append(
            f"The control is not complete: every task has had {found.attempts} of "
            f"{count_text(found.wanted, 'attempt')}, and up to {found.missing:,} more can be made."
        )
    if repeating:
        said.append("The attempts are not independent: this model gives equal answers to equal requests.")
    return said


def exam_command(run: str) -> str:
    """Return the shell command that begins or continues the examination of the run's best agent."""
    return f"dgm report {shlex.quote(one_line(run, 100))} --holdout"


def control_record(found: ControlFindings) -> dict[str, Any]:
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


def amount_text(value: float, unit: Unit) -> str:
    """Return ``1.23 USD``, ``9.7M tokens``, ``2.5 hours of work``."""
    match unit:
        case Unit.USD:
            return f"{value:.2f} USD" if value >= 0.01 else f"{value:.4f} USD"
        case Unit.TOKENS:
            return f"{short_number(value)} tokens"
        case Unit.SECONDS:
            return f"{value / 3600:.1f} hours of work" if value >= 3600 else f"{value:.0f} seconds of work"
