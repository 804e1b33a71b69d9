"""The one question of a report: is the best agent better than the seed on tasks that the search never saw?

Numbers only; ``people``, ``page`` and ``record`` say them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dgm.archive.accounts import Accounts, RoleAndModel
from dgm.archive.run import Run
from dgm.domain import Agent, AgentId, Evaluate, Tally, Usage
from dgm.report import control
from dgm.search.control import ControlFindings, control_findings
from dgm.search.exam import FOLDER, Comparison, candidate, compare
from dgm.search.summary import by_record, models_of, models_text, spend_record, tally_record
from dgm.show.safe import one_line
from dgm.simulate import PLAN as SIMULATION
from dgm.stats import mcnemar_power, paired_bootstrap, tasks_needed

SIGNIFICANT = 0.05
WORTH_FINDING = 0.20
"""The true gain for which a report says how probably the tasks would have shown it."""
POWERFUL = 0.80


class Answer(StrEnum):
    """What the examination says of the best agent."""

    BETTER = "better"
    WORSE_SHOWN = "worse"
    NOT_SHOWN = "not shown to be better"
    NOT_EXAMINED = "not examined"
    """Or not to the end: what is looked at before the last verdict may end up anywhere."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, and one sentence that says it with its counts."""

    answer: Answer
    sentence: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What the examination says, and what it took."""

    comparison: Comparison
    spend: Usage
    by: Mapping[RoleAndModel, Usage]
    seed: Usage
    """For evaluating the seed."""
    best: Usage
    tasks: int
    """Holdout tasks."""
    missing: int = 0
    """Evaluations of the two that are still to be done; those that were given up are not."""
    control: ControlFindings | None = None
    """What the search's spend buys without a search."""

    @property
    def ungraded(self) -> int:
        """Tasks without a pair of verdicts although nothing is missing: their evaluation was given up."""
        return 0 if self.missing else self.tasks - self.comparison.first.n


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
            len(exam.tree.tasks),
            sum(_missing(exam, entered) for entered in {seed, best}),
            control_findings(exam, agent),
        )


def _missing(exam: Run, entered: AgentId) -> int:
    """First attempts that were not started, run, or are to be performed again."""
    tree = exam.tree
    open_yet = [*tree.pending.values(), *tree.to_redo().values()]
    under_way = sum(
        isinstance(what, Evaluate) and what.agent == entered and not what.attempt for what in open_yet
    )
    return under_way + sum(task not in tree.tried(entered) for task in tree.tasks)


def is_better(found: Comparison) -> bool:
    """Whether the second of two agents is shown to be better: exact two-sided McNemar p below 0.05."""
    return found.p < SIGNIFICANT and len(found.gained) > len(found.lost)


def verdict(found: Findings | None, best: AgentId, run: str) -> Verdict:
    """What is shown, in one sentence.

    Args:
        found: what the examination of the seed and ``best`` says.
        best: the agent that the search recommends.
        run: its name, for the command that goes on.
    """
    more = f"dgm report {one_line(run, 100)} --holdout"
    if found is None or not found.tasks:
        return Verdict(
            Answer.NOT_EXAMINED,
            "Nothing is shown yet: seed and best agent have not been compared on holdout tasks "
            f"({more} does it).",
        )
    pairs = found.comparison
    if found.missing:
        return Verdict(
            Answer.NOT_EXAMINED,
            f"Nothing is shown yet: of {found.tasks} holdout tasks, {pairs.first.n} have a verdict on both the seed "
            f"and the best agent ({more} goes on).",
        )
    counts = (
        f"On {pairs.first.n} holdout tasks that the search never saw, the best agent resolves {pairs.second.resolved} "
        f"and the seed {pairs.first.resolved}"
    )
    if best == 0:
        return Verdict(
            Answer.NOT_SHOWN,
            f"The search recommends the seed itself, which resolves {pairs.first.resolved} of {pairs.first.n} "
            "holdout tasks: no agent that it made is believed to be better.",
        )
    if is_better(pairs):
        return Verdict(
            Answer.BETTER, f"{counts}: it is better than the seed (exact McNemar {p_text(pairs.p)})."
        )
    if pairs.p < SIGNIFICANT:
        return Verdict(
            Answer.WORSE_SHOWN, f"{counts}: it is worse than the seed (exact McNemar {p_text(pairs.p)})."
        )
    return Verdict(
        Answer.NOT_SHOWN,
        f"{counts}: it is not shown to be better than the seed (exact McNemar {p_text(pairs.p)}).",
    )


def p_text(p: float) -> str:
    """``p = 0.375``; more digits of what is smaller, down to ``p < 0.00001``."""
    return "p < 0.00001" if p < 1e-5 else f"p = {p:.3f}" if p >= 0.001 else f"p = {p:.5f}"


def holdout_record(found: Findings) -> dict[str, Any]:
    """The examination for programs."""
    pairs = found.comparison
    return {
        "tasks": found.tasks,
        "missing": found.missing,
        "ungraded": found.ungraded,
        "seed": tally_record(pairs.first),
        "best": tally_record(pairs.second),
        "gained": list(pairs.gained),
        "lost": list(pairs.lost),
        "difference": difference_record(pairs),
        "mcnemar_p": round(pairs.p, 6),
        "mcnemar_mid_p": round(pairs.mid_p, 6),
        "power": power_record(pairs),
        "shown_better": not found.missing and is_better(pairs),
        "control": control.record(found.control) if found.control else None,
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
    return {**spend_record(usage), "usd_per_resolved": usd_each(usage, tally)}


def usd_each(usage: Usage, tally: Tally) -> float | None:
    """What each resolved task cost; None where none was."""
    return round(usage.usd / tally.resolved, 6) if tally.resolved else None


def note(run: Run) -> str:
    """How far all this is to be trusted, on one line."""
    models = models_of(run)
    if SIMULATION in run.config:
        return "simulated search: no agent ran, and every verdict was drawn from a model of agents and tasks"
    if "offline" in models.values():
        return (
            "offline model: a repair program, not a language model; tasks and edits have the same authors, "
            "so improvement is expected, not a finding"
        )
    searched = (
        f"one search with {one_line(models_text(models), 120)} on {run.config['settings']['benchmark']}"
    )
    return (
        f"this is {searched}; models answer differently from call to call, "
        "so repeat it with other seeds before you rely on it"
    )
