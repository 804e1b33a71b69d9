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
    spent, n = amount_text(price.search, price.unit), pairs.first.n
    if found.wanted == 1:
        return [f"Control of equal spend: the {spent} of the search pay for no further attempt of the seed."]
    bound = f"; it was given at most {found.bound}" if found.wanted < price.affordable else ""
    bought = (
        f"Control of equal spend: the {spent} of the search pay for {price.affordable:,} attempts of the seed at each "
        f"holdout task{bound}. Solved tasks are not tried again: the further attempts took "
        f"{amount_text(found.took, price.unit)}."
    )
    seed = (
        f"With {count_text(found.attempts, 'attempt')} at each task, the seed resolves {pairs.first.resolved} of {n} "
        "tasks (a task counts if any attempt resolves it); with one attempt, "
        f"{found.once.resolved} of {found.once.n}."
    )
    best = (
        f"With one attempt, the best agent resolves {pairs.second.resolved} of {n}: {len(pairs.gained)} that the "
        f"control does not resolve, while it misses {len(pairs.lost)} that the control resolves; "
        f"{mcnemar_text(pairs.p, pairs.mid_p)}. The control is a description: one attempt of each decides whether the "
        "best agent is better than the seed."
    )
    said = [bought, seed, best]
    if found.missing:
        said.append(
            f"The control is not complete: every task has had {found.attempts} of "
            f"{count_text(found.wanted, 'attempt')}, and up to {found.missing:,} more are left."
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
