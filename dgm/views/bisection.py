"""The bisection of a lineage, as ``dgm bisect`` prints it."""

from collections.abc import Sequence
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
    attempts: tuple[Vote, ...]
    """The result of each attempt: ``passes``, ``fails``, ``no answer``."""
    decision: Vote | None
    """That of their majority; None while it is open."""


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
    ending: Ending | None
    """``found``, or why nothing was; None if it is not complete."""
    last_passing: int | None
    first_failing: int | None
    """The first member that fails; None unless it was found."""
    between: tuple[int, ...]
    """Members between the two, without an answer."""
    contradictions: tuple[int, ...]
    """Members that contradict a single change: they fail before it, or pass after it."""
    patch: str
    """Its changes against the last passing member."""
    folder: str | None
    """Where the attempts are recorded; None for a command."""
    spend: UsageView
    ended: str
    """Why this session ended."""
    message: str
    """The same in one line."""

    @classmethod
    def of(  # noqa: PLR0913  (each is a part of the view)
        cls,
        run: Run,
        lineage: Sequence[Agent],
        criterion: str,
        votes: Sequence[Sequence[Vote]],
        state: Bisection,
        session: SessionEnding,
        folder: Path | None,
        spend: Usage,
    ) -> Self:
        """Return the view of a bisection; members in ``votes`` and ``state`` are numbered from the seed."""
        is_found = state.ending is Ending.FOUND
        last, first = lineage[state.last_good], lineage[state.first_bad]
        between = lineage[state.last_good + 1 : state.first_bad]
        return cls(
            run=run.name,
            agent=lineage[-1].id,
            criterion=criterion,
            members=len(lineage),
            tried=tuple(
                TriedMember(agent=member.id, attempts=tuple(tries), decision=state.decided.get(number))
                for number, (member, tries) in enumerate(zip(lineage, votes, strict=True))
                if tries
            ),
            ending=state.ending,
            last_passing=last.id if is_found else None,
            first_failing=first.id if is_found else None,
            between=tuple(member.id for member in between) if is_found else (),
            contradictions=tuple(lineage[number].id for number in state.contradictions) if is_found else (),
            patch=decode(run.repository.diff(last.commit, first.commit)) if is_found else "",
            folder=str(folder) if folder else None,
            spend=UsageView.of(spend),
            ended=session.reason.value,
            message=session.message,
        )

    @property
    def exit_code(self) -> int:
        """0 if the first failing member was found; 1 if the ends do not differ; else that of the session."""
        if self.ending is None:
            return code_of_ending(self.ended)
        return 0 if self.ending is Ending.FOUND else FAILED
