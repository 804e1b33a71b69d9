"""The bisection of a lineage, as ``dgm bisect`` prints it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from dgm.analysis.budgets import Ending as SessionEnding
from dgm.archive.run import Run
from dgm.domain import Agent, Usage
from dgm.evaluation.bisecting import Bisection, Ending, Vote
from dgm.views.agents import decode
from dgm.views.evaluation import FAILED, code_of_ending
from dgm.views.values import UsageView, View


class TriedMember(View):
    """One agent of the lineage with its attempts."""

    agent: int
    passes: int
    """Attempts that pass."""
    fails: int
    """Attempts that fail."""
    no_answer: int
    """Attempts that say nothing."""
    decision: str | None
    """``passes``, ``fails``, ``no answer``; None while it is open."""


class BisectionView(View):
    """Where in a lineage an agent began to fail; earlier sessions are included."""

    run: str
    agent: int
    criterion: str
    """Such as ``probe feeds-give-up-too-early`` or ``command make check``."""
    members: int
    """Length of the lineage, the seed and the agent included."""
    tried: tuple[TriedMember, ...]
    """Members with an attempt, the seed first."""
    ending: str | None
    """``found``, or why nothing was; None if it is not complete."""
    message: str
    """The result in one sentence."""
    last_passing: int | None
    first_failing: int | None
    """The first member that fails; None unless it was found."""
    between: tuple[int, ...]
    """Members between the two, without an answer."""
    contradictions: tuple[int, ...]
    """Members that contradict a single change: they fail before it, or pass after it."""
    rationale: str
    """Why the first failing member was made."""
    patch: str
    """What it changed against the last passing member."""
    folder: str
    """Where the attempts are recorded."""
    spend: UsageView
    ended: str
    """Why this session ended."""

    @classmethod
    def of(  # noqa: PLR0913  (each is a part of the view)
        cls,
        run: Run,
        lineage: Sequence[Agent],
        criterion: str,
        votes: Mapping[int, Sequence[Vote]],
        state: Bisection,
        session: SessionEnding,
        folder: Path,
        spend: Usage,
    ) -> Self:
        """Return the view of a bisection; members in ``votes`` and ``state`` are numbered from the seed."""
        is_found = state.ending is Ending.FOUND
        last, first = lineage[state.last_good], lineage[state.first_bad]
        return cls(
            run=run.name,
            agent=lineage[-1].id,
            criterion=criterion,
            members=len(lineage),
            tried=tuple(
                TriedMember(
                    agent=member.id,
                    passes=votes[number].count(Vote.GOOD),
                    fails=votes[number].count(Vote.BAD),
                    no_answer=votes[number].count(Vote.NONE),
                    decision=state.decided.get(number),
                )
                for number, member in enumerate(lineage)
                if votes[number]
            ),
            ending=state.ending and state.ending.value,
            message=_describe(state, lineage, session),
            last_passing=last.id if is_found else None,
            first_failing=first.id if is_found else None,
            between=tuple(lineage[number].id for number in state.between) if is_found else (),
            contradictions=tuple(lineage[number].id for number in state.contradictions) if is_found else (),
            rationale=first.rationale if is_found else "",
            patch=decode(run.repository.diff(last.commit, first.commit)) if is_found else "",
            folder=str(folder),
            spend=UsageView.of(spend),
            ended=session.reason.value,
        )

    @property
    def exit_code(self) -> int:
        """0 if the first failing member was found; 1 if the ends do not differ; else that of the session."""
        if self.ending is None:
            return code_of_ending(self.ended)
        return 0 if self.ending == Ending.FOUND else FAILED


def _describe(state: Bisection, lineage: Sequence[Agent], session: SessionEnding) -> str:
    seed, agent = lineage[0].id, lineage[-1].id
    match state.ending:
        case None:
            return f"not known yet: {session.message}"
        case Ending.SEED_FAILS:
            return f"nothing to find: the seed, agent {seed}, fails already"
        case Ending.AGENT_PASSES:
            return f"nothing to find: agent {agent} does not fail"
        case Ending.NO_ANSWER:
            silent = agent if state.decided.get(len(lineage) - 1) is Vote.NONE else seed
            return f"not known: agent {silent} gives no answer; its attempts do not get far enough to pass or fail"
        case Ending.FOUND:
            first, last = lineage[state.first_bad], lineage[state.last_good]
            if state.between:
                middle = ", ".join(str(lineage[number].id) for number in state.between)
                return (
                    f"agent {last.id} passes and agent {first.id} fails; between them, {middle} give no answer, so the "
                    "edit is one of theirs or that of the latter"
                )
            return f"agent {first.id} is the first that fails; its parent, agent {last.id}, passes"
