"""The one question of a report: is the best agent better than the seed on tasks that the search never saw?

Numbers only; ``people``, ``page`` and ``record`` say them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dgm.analysis.accounts import Accounts, RoleAndModel
from dgm.analysis.summary import models_of, models_text, spend_record, tally_record, usage_records
from dgm.archive.run import Run
from dgm.domain import SEED, Agent, AgentId, Tally, Usage
from dgm.evaluation.control import ControlFindings, compute_findings, control_of
from dgm.evaluation.exam import (
    FOLDER,
    OPERATOR,
    Comparison,
    compare_candidates,
    count_missing_firsts,
    find_candidate,
)
from dgm.report import control
from dgm.show.safe import one_line
from dgm.show.words import SIGNIFICANT, p_text
from dgm.simulation import PLAN as SIMULATION
from dgm.stats import mcnemar_power, paired_bootstrap, tasks_needed

WORTH_FINDING = 0.20
"""The true gain for which a report gives the probability that the tasks would have shown it."""
POWERFUL = 0.80


class HoldoutAnswer(StrEnum):
    """The examination's answer about the best agent."""

    BETTER = "better"
    WORSE_SHOWN = "worse"
    NOT_SHOWN = "not shown to be better"
    NOT_EXAMINED = "not examined"
    """Not examined, or not to the end: results before the last verdict may still change completely."""


WORDS: Mapping[HoldoutAnswer, str] = {
    HoldoutAnswer.BETTER: "better than the seed",
    HoldoutAnswer.WORSE_SHOWN: "worse than the seed",
    HoldoutAnswer.NOT_SHOWN: "not shown to be better than the seed",
}
"""The words for each answer."""


@dataclass(frozen=True, slots=True)
class HoldoutVerdict:
    """The answer, and one sentence that gives it with its counts."""

    answer: HoldoutAnswer
    sentence: str


@dataclass(frozen=True, slots=True)
class ExamFindings:
    """The result of the examination, and its cost."""

    comparison: Comparison
    spend: Usage
    by: Mapping[RoleAndModel, Usage]
    seed: Usage
    """Usage for evaluating the seed."""
    best: Usage
    tasks: int
    """Number of holdout tasks."""
    missing: int = 0
    """Evaluations of the two agents that are still to be done; evaluations that were given up do not count."""
    control: ControlFindings | None = None
    """The control: the seed with attempts for the search's spend, without a search."""
    examined: int = 0
    """Number of the run's agents beside its seed that have a verdict on one of these tasks."""
    itself: bool = False
    """Whether the best agent is the seed: then there is nothing to compare, and only the seed's tally is shown."""

    @property
    def ungraded(self) -> int:
        """Tasks without a pair of verdicts although nothing is missing: their evaluation was given up."""
        return 0 if self.missing else self.tasks - self.comparison.first.n


def exam_exists(run: Run) -> bool:
    """Return whether an examination was begun."""
    return (run.folder / FOLDER / "run.json").exists()


def read_findings(run: Run, agent: Agent) -> ExamFindings | None:
    """Return the results of the seed and ``agent`` in the run's examination; None where one of them was not entered."""
    if not exam_exists(run):
        return None
    with Run.open(run.folder / FOLDER) as exam:
        seed, best = find_candidate(exam, run.tree.agents[0]), find_candidate(exam, agent)
        if seed is None or best is None:
            return None
        accounts = Accounts(exam)
        return ExamFindings(
            compare_candidates(exam, seed, best),
            exam.tree.spend,
            dict(exam.tree.spend_by),
            accounts.of(seed).total,
            accounts.of(best).total,
            len(exam.tree.tasks),
            sum(count_missing_firsts(exam, entered) for entered in {seed, best}),
            compute_findings(exam, agent, control_of(run)),
            _count_examined(exam, seed),
            seed == best,
        )


def _count_examined(exam: Run, seed: AgentId) -> int:
    entered = [agent.id for agent in exam.tree.agents if agent.operator == OPERATOR and agent.id != seed]
    return sum(exam.tree.own(agent).n > 0 for agent in entered)


def is_better(found: Comparison) -> bool:
    """Return whether the second of two agents is shown to be better: exact two-sided McNemar p below 0.05."""
    return found.p < SIGNIFICANT and len(found.gained) > len(found.lost)


def answer_of(found: ExamFindings | None) -> HoldoutAnswer:
    """Return the answer by the one rule for the terminal, the page and programs."""
    if found is None or not found.tasks or found.missing:
        return HoldoutAnswer.NOT_EXAMINED
    if found.comparison.p >= SIGNIFICANT:
        return HoldoutAnswer.NOT_SHOWN
    return HoldoutAnswer.BETTER if is_better(found.comparison) else HoldoutAnswer.WORSE_SHOWN


def make_verdict(
    found: ExamFindings | None, best: AgentId, run: str, *, simulated: bool = False
) -> HoldoutVerdict:
    """Return the answer with one sentence for it.

    Args:
        found: the examination of the seed and ``best``.
        best: the agent that the search recommends.
        run: its name, for the command that continues the examination.
        simulated: whether the run has no benchmark, and so no tasks for an examination.
    """
    if simulated:
        sentence = (
            "Nothing is shown: the search is simulated, and there are no holdout tasks to compare agents on."
        )
    elif best == SEED:
        sentence = _seed_sentence(found, control.exam_command(run))
    else:
        sentence = _best_sentence(found, control.exam_command(run))
    return HoldoutVerdict(answer_of(found), sentence)


def _seed_sentence(found: ExamFindings | None, more: str) -> str:
    """Return the answer where the best agent is the seed; ``more`` is the command that continues the examination."""
    if found is None or not found.tasks:
        return (
            "Nothing is shown yet: the search recommends the seed itself, which has not been evaluated on holdout "
            f"tasks ({more} does it)."
        )
    own = found.comparison.first
    if found.missing:
        return (
            f"Nothing is shown yet: the search recommends the seed itself, which has a verdict on {own.n} of "
            f"{found.tasks} holdout tasks ({more} goes on)."
        )
    return (
        f"The search recommends the seed itself, which resolves {own.resolved} of {own.n} "
        "holdout tasks: no agent that it made is believed to be better."
    )


def _best_sentence(found: ExamFindings | None, more: str) -> str:
    if found is None or not found.tasks:
        return f"Nothing is shown yet: seed and best agent have not been compared on holdout tasks ({more} does it)."
    pairs = found.comparison
    if found.missing:
        return (
            f"Nothing is shown yet: of {found.tasks} holdout tasks, {pairs.first.n} have a verdict on both the seed "
            f"and the best agent ({more} goes on)."
        )
    return (
        f"On {pairs.first.n} holdout tasks that the search never saw, the best agent resolves {pairs.second.resolved} "
        f"and the seed {pairs.first.resolved}: it is {WORDS[answer_of(found)]} (exact McNemar {p_text(pairs.p)})."
    )


def repeated_exam_note(found: ExamFindings) -> str:
    """Return a sentence where more than one agent was compared with the seed on these tasks; else empty."""
    if found.examined < 2:
        return ""
    return (
        f"{found.examined} agents of this run have been examined on these tasks; p is not corrected for that, "
        "and the more are examined, the sooner one of them looks better by luck."
    )


def holdout_record(found: ExamFindings) -> dict[str, Any]:
    """Return the examination for programs.

    Only the counts are given if it is not complete, or if the best agent is the seed.
    """
    pairs, whole = found.comparison, not found.missing and not found.itself
    return {
        "tasks": found.tasks,
        "missing": found.missing,
        "ungraded": found.ungraded,
        "seed": tally_record(pairs.first),
        "best": tally_record(pairs.second),
        "gained": list(pairs.gained),
        "lost": list(pairs.lost),
        "difference": difference_record(pairs) if whole else None,
        "mcnemar_p": pairs.p if whole else None,
        "mcnemar_mid_p": pairs.mid_p if whole else None,
        "power": power_record(pairs) if whole else None,
        "shown_better": answer_of(found) is HoldoutAnswer.BETTER,
        "examined": found.examined,
        "control": control.control_record(found.control) if found.control and not found.missing else None,
        "spend": {
            **spend_record(found.spend),
            "by": usage_records(found.by),
            "seed": _cost_record(found.seed, pairs.first),
            "best": _cost_record(found.best, pairs.second),
        },
    }


def difference_record(pairs: Comparison) -> dict[str, Any] | None:
    """Return how much higher the second's rate is, with the bootstrap's 95 % interval over tasks; None without tasks.

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
    """Return the probability that as many tasks show a true gain of 20 points; None without tasks.

    The share of lost tasks is assumed to be the one observed here, up to the most that leaves room for the gain.
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
    """Return the cost of each resolved task in USD; None where none was resolved."""
    return round(usage.usd / tally.resolved, 6) if tally.resolved else None


def trust_note(run: Run) -> str:
    """Return one line on how far the results are to be trusted."""
    models = models_of(run)
    if SIMULATION in run.config:
        return "simulated search: no agent ran, and every verdict was drawn from a model of agents and tasks"
    if "offline" in models.values():
        return (
            "offline model: a repair program, not a language model; tasks and edits have the same authors, "
            "so improvement is expected, not a finding"
        )
    benchmark = one_line(run.settings()["benchmark"], 160)
    return (
        f"this is one search with {one_line(models_text(models), 120)} on {benchmark}; models "
        "answer differently from call to call, so repeat it with other seeds before you rely on it"
    )
