"""A conversation with everything derived from it: the parsed problem, the evidence, the remaining candidates."""

from dataclasses import dataclass
from functools import cached_property

from dgm.offline import localise, rank, reading, reproduction, statement
from dgm.offline.capabilities import ToolRole
from dgm.offline.guidelines import Concept
from dgm.offline.knowledge import Conversation
from dgm.offline.localise import Evidence
from dgm.offline.moves import Edit, Move, RunTests
from dgm.offline.rank import RankedCandidate
from dgm.offline.statement import Statement
from dgm.offline.trial import Trial, trials


@dataclass(frozen=True)
class Situation:
    """A conversation with everything derived from it, each part computed at most once."""

    conversation: Conversation

    @cached_property
    def problem(self) -> Statement:
        """The parsed statement."""
        return statement.parse_statement(self.conversation.problem)

    @cached_property
    def evidence(self) -> Evidence:
        """The evidence from runs."""
        return localise.gather(self.conversation)

    @cached_property
    def trial(self) -> Trial:
        """The outcome so far of the present candidate."""
        return self.trials[-1] if self.trials else Trial()

    @cached_property
    def trials(self) -> list[Trial]:
        """The outcome of each candidate so far."""
        return trials(self.conversation)

    @cached_property
    def order(self) -> list[str]:
        """Files, most suspicious first."""
        return reading.file_order(self.conversation, self.problem, self.evidence)

    @cached_property
    def everything(self) -> list[RankedCandidate]:
        """All candidates, best first."""
        return rank.rank_candidates(self.conversation, self.problem, self.evidence)

    @cached_property
    def left(self) -> list[RankedCandidate]:
        """Candidates not tried yet, best first."""
        tried = self.conversation.tried
        return [item for item in self.everything if item.candidate.mark not in tried]

    @property
    def moves(self) -> list[Move | None]:
        """All moves so far; ``None`` for a call that cannot be understood any more."""
        return [step.move for step in self.conversation.steps]

    def has_reproduction(self) -> bool:
        """Return whether the example's script was run and its outcome shown."""
        return any(reproduction.outcome(step.result or "") is not None for step in self.conversation.steps)

    def targets(self) -> tuple[str, ...]:
        """Return the tests to run after an edit; empty for all of them.

        Tests are chosen if the output of all was too long to see, or if the guidelines ask for chosen tests.
        """
        cut = any(isinstance(move, RunTests) and move.targets for move in self.moves)
        known = self.evidence.failing[:3]
        if known and RunTests(known) in self.moves:
            return known
        return self.relevant_tests() if cut or self.has(Concept.TARGETED) else ()

    def relevant_tests(self) -> tuple[str, ...]:
        """Return the test modules of the known failures, or else the one that fits best."""
        edited = [s.move.path for s in self.conversation.steps if s.done and isinstance(s.move, Edit)]
        found = reading.test_modules(self.conversation, self.problem, self.evidence, edited[-1:])
        failing = {name.rsplit(".", 2)[0] for name in self.evidence.failing}
        return tuple(name for name in found[:3] if name in failing) or tuple(found[:1])

    def has(self, concept: Concept) -> bool:
        """Return whether the system text asks for this concept."""
        return self.conversation.has(concept)

    def has_shell(self) -> bool:
        """Return whether commands can be run."""
        return ToolRole.SHELL in self.conversation.toolbox

    def tested(self) -> bool:
        """Return whether a run of tests was asked for and answered."""
        return any(isinstance(s.move, RunTests) and s.result is not None for s in self.conversation.steps)
