"""What a report says: the search, the examination on held-out tasks, what both have cost, and how far to trust it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dgm.archive.accounts import Accounts, RoleAndModel
from dgm.archive.run import Run
from dgm.cli.output import one_line
from dgm.cli.rows import interval_text, mcnemar_text, tally_text, usage_lines, usage_text
from dgm.domain import Agent, AgentId, Tally, Usage
from dgm.search.exam import FOLDER, Comparison, candidate, compare
from dgm.search.summary import (
    by_record,
    chosen_record,
    models_of,
    models_text,
    spend_record,
    tally_record,
)
from dgm.stats import mcnemar_power, paired_bootstrap, tasks_needed

SIGNIFICANT = 0.05
WORTH_FINDING = 0.20
"""The true gain for which a report says how probably the tasks would have shown it."""
POWERFUL = 0.80


@dataclass(frozen=True, slots=True)
class Findings:
    """What the examination says, and what it took."""

    comparison: Comparison
    spend: Usage
    by: Mapping[RoleAndModel, Usage]
    seed: Usage
    """For evaluating the seed."""
    best: Usage


def exists(run: Run) -> bool:
    """Whether an examination was begun."""
    return (run.folder / FOLDER / "run.json").exists()


def findings(run: Run, agent: Agent) -> Findings | None:
    """The seed and ``agent`` in the run's examination; None where one of them was not entered."""
    if not exists(run):
        return None
    with Run.open(run.folder / FOLDER) as exam:
        seed, best = candidate(exam, run.tree.agents[0]), candidate(exam, agent)
        if seed is None or best is None:
            return None
        accounts = Accounts(exam)
        return Findings(
            compare(exam, seed, best),
            exam.tree.spend,
            dict(exam.tree.spend_by),
            accounts.of(seed).total,
            accounts.of(best).total,
        )


def holdout_record(found: Findings) -> dict[str, Any]:
    """The examination for programs."""
    pairs = found.comparison
    return {
        "seed": tally_record(pairs.first),
        "best": tally_record(pairs.second),
        "gained": list(pairs.gained),
        "lost": list(pairs.lost),
        "difference": difference_record(pairs),
        "mcnemar_p": round(pairs.p, 6),
        "mcnemar_mid_p": round(pairs.mid_p, 6),
        "power": power_record(pairs),
        "shown_better": _is_better(pairs),
        "spend": {
            **spend_record(found.spend),
            "by": by_record(found.by),
            "seed": _cost_record(found.seed, pairs.first),
            "best": _cost_record(found.best, pairs.second),
        },
    }


def difference_record(pairs: Comparison) -> dict[str, Any] | None:
    """By how much the second's rate is higher, with the bootstrap's 95 % interval over tasks; None without tasks.

    The interval is None where all tasks went alike, because then nothing says how far another sample could be off.
    """
    n, gained, lost = pairs.first.n, len(pairs.gained), len(pairs.lost)
    if not n:
        return None
    interval = None
    if n not in (gained, lost, n - gained - lost):
        differences = [1] * gained + [-1] * lost + [0] * (n - gained - lost)
        interval = [round(end, 6) for end in paired_bootstrap(differences)]
    return {"mean": round((gained - lost) / n, 6), "interval": interval}


def power_record(pairs: Comparison) -> dict[str, Any] | None:
    """What as many tasks can show: how probably the test finds a true gain of 20 points; None without tasks.

    As large a share of tasks is supposed to be lost as was lost here, up to the most that leaves room for the gain.
    """
    n = pairs.first.n
    if not n:
        return None
    lost = min(len(pairs.lost) / n, (1 - WORTH_FINDING) / 2)
    gained = lost + WORTH_FINDING
    return {
        "gained": round(gained, 6),
        "lost": round(lost, 6),
        "power": round(mcnemar_power(n, gained, lost, SIGNIFICANT), 6),
        "tasks_for_80_percent": tasks_needed(gained, lost, POWERFUL, SIGNIFICANT),
    }


def _cost_record(usage: Usage, tally: Tally) -> dict[str, Any]:
    return {**spend_record(usage), "usd_per_resolved": _usd_each(usage, tally)}


def _usd_each(usage: Usage, tally: Tally) -> float | None:
    return round(usage.usd / tally.resolved, 6) if tally.resolved else None


def _is_better(found: Comparison) -> bool:
    return found.p < SIGNIFICANT and len(found.gained) > len(found.lost)


def search_lines(run: Run, best: AgentId) -> list[str]:
    """The search for people."""
    lines = ["on the search tasks (chosen on these, so they flatter the best agent):"]
    for name, agent in (("seed", AgentId(0)), ("best", best)):
        own = run.tree.own(agent)
        lines.append(f"  {name}  agent {agent:<4} {tally_text(own):<12} {interval_text(own)}")
    if chosen := chosen_record(run, best):
        lines.append(
            f"  best agent's rate: naive {chosen['rate']:.0%}, corrected for choosing the best of "
            f"{chosen['evaluated']}: {chosen['corrected_rate']:.0%}"
        )
    return [
        *lines,
        f"  best agent's last step: {one_line(run.tree.agents[best].rationale, 80)}",
        f"  spent on the search: {usage_text(run.tree.spend)}",
        *usage_lines(run.tree.spend_by, "    "),
    ]


def holdout_lines(run: Run, found: Findings | None, best: AgentId) -> list[str]:
    """The examination for people."""
    if found is None:
        return [f"holdout tasks: not evaluated for these two agents; run: dgm report {run.name} --holdout"]
    pairs = found.comparison
    lines = [
        f"on {pairs.first.n} holdout tasks, which nothing in the search has seen (95 % Wilson intervals):"
    ]
    for name, agent, tally, usage in (
        ("seed", 0, pairs.first, found.seed),
        ("best", best, pairs.second, found.best),
    ):
        each = _usd_each(usage, tally)
        cost = f"{usage.usd:.4f} USD" + (f", {each:.4f} for each resolved task" if each is not None else "")
        lines.append(f"  {name}  agent {agent:<4} {tally_text(tally):<12} {interval_text(tally):<8} {cost}")
    verdict = "better than the seed" if _is_better(pairs) else "not shown to be better than the seed"
    changed = f"{len(pairs.gained)} gained, {len(pairs.lost)} lost; {mcnemar_text(pairs.p, pairs.mid_p)}"
    return [
        *lines,
        *_difference_lines(pairs),
        f"  {changed}: the best agent is {verdict}",
        *_power_lines(pairs),
        f"  spent on the holdout tasks: {usage_text(found.spend)}",
        *usage_lines(found.by, "    "),
    ]


def _difference_lines(pairs: Comparison) -> list[str]:
    found = difference_record(pairs)
    if not found or not found["interval"]:
        return []
    low, high = (round(100 * end) for end in found["interval"])
    return [
        f"  difference: {round(100 * found['mean']):+} points, {low:+} to {high:+} by a 95 % bootstrap over tasks"
    ]


def _power_lines(pairs: Comparison) -> list[str]:
    found = power_record(pairs)
    if not found:
        return []
    supposed = f"{found['gained']:.0%} gained, {found['lost']:.0%} lost"
    found_with = f"{pairs.first.n} tasks show a true gain of {WORTH_FINDING * 100:.0f} points ({supposed})"
    needed = f"for {POWERFUL:.0%} it takes {found['tasks_for_80_percent']} tasks"
    return [f"  power: {found_with} with probability {found['power']:.0%}; {needed}"]


def note(run: Run) -> str:
    """How far all this is to be trusted, on one line."""
    models = models_of(run)
    if "offline" in models.values():
        return (
            "note: offline model: a repair program, not a language model; tasks and edits have the same authors, "
            "so improvement is expected, not a finding"
        )
    searched = (
        f"one search with {one_line(models_text(models), 120)} on {run.config['settings']['benchmark']}"
    )
    return (
        f"note: this is {searched}; models answer differently from call to call, "
        "so repeat it with other seeds before you rely on it"
    )
