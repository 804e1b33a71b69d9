"""The state that the policy's parts share: a posterior folded out of the events, and what it says of a tree."""

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    ChildProposed,
    Recorded,
    RunStarted,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, TaskId, Verdict
from dgm.policies.lineage.outlook import Outlook, OutlookInputs
from dgm.policies.lineage.posterior import Posterior

EXPANSION_ROLES = ("improve", "diagnose", "probe")
EVALUATION_ROLE = "solve"


class Fold:
    """The shared state; only ``observe`` changes it, and ``outlook`` only keeps a copy of its last answer.

    The most actions ever under way at once stand for the number of workers, because the log does not say it. The number
    survives a resume: a later session with fewer workers counts as one with as many as the log has seen.
    """

    def __init__(self) -> None:
        self.posterior = Posterior()
        self._tasks: dict[TaskId, int] = {}
        self._deaths: dict[AgentId, int] = {}
        self._under_way: set[ActionId] = set()
        self._most_under_way = 0
        self._seconds = [0.0, 0.0]
        """Of finished evaluations, and of finished expansions."""
        self._finished = [0, 0]
        self._last: tuple[Tree, int, Outlook] | None = None

    def observe(self, event: Recorded) -> None:
        """Fold one event into the state."""
        match event.event:
            case RunStarted(_, tasks):
                for task in tasks:
                    self._number(task)
            case ActionStarted(action):
                self._under_way.add(action)
                self._most_under_way = max(self._most_under_way, len(self._under_way))
            case ActionLost(action) | ChildProposed(action):
                self._under_way.discard(action)
            case AgentBorn(action, _, child):
                self._end(action, 1, child.cost.seconds)
                self.posterior.born(child.parents[0] if child.parents else 0)
            case AgentStillborn(action, outcome):
                self._end(action, 1, outcome.cost.seconds)
                dead = outcome.parents[0]
                self._deaths[dead] = self._deaths.get(dead, 0) + 1
            case TaskGraded(action, outcome):
                self._end(action, 0, outcome.cost.seconds)
                if outcome.verdict is not Verdict.INVALID:
                    solved = outcome.verdict is Verdict.RESOLVED
                    self.posterior.graded(outcome.agent, self._number(outcome.task), solved, outcome.attempt)
            case VerdictWithdrawn(what=what, verdict=verdict):
                solved = verdict is Verdict.RESOLVED
                self.posterior.withdrawn(what.agent, self._number(what.task), solved, what.attempt)
            case _:
                pass

    def outlook(self, tree: Tree) -> Outlook:
        """Return the posterior's view of the tree, which must be the fold of the observed events.

        Raises:
            ValueError: the tree has another number of agents than births were observed.
        """
        if self._last is not None and self._last[0] is tree and self._last[1] == tree.seq:
            return self._last[2]
        if len(self.posterior) != len(tree.agents):
            raise ValueError(
                f"{len(self.posterior)} births were observed, but the tree has {len(tree.agents)} agents"
            )
        workers = max(self._most_under_way, len(tree.pending) + 1)
        around = OutlookInputs(self._tasks, self._deaths, self._expansion_cost(tree), workers)
        outlook = Outlook(tree, self.posterior, around)
        self._last = tree, tree.seq, outlook
        return outlook

    def _number(self, task: TaskId) -> int:
        return self._tasks.setdefault(task, len(self._tasks))

    def _end(self, action: ActionId, kind: int, seconds: float) -> None:
        self._under_way.discard(action)
        if action:
            self._seconds[kind] += seconds
            self._finished[kind] += 1

    def _expansion_cost(self, tree: Tree) -> float:
        """Return the cost of one expansion in evaluations: the budget's, else the measured one, else 1.0.

        It is measured in tokens; in seconds where no tokens were used.
        """
        if tree.budget.expansion_cost > 0:
            return tree.budget.expansion_cost
        evaluations, expansions = self._finished
        if not evaluations or not expansions:
            return 1.0
        tokens = [0, 0]
        for (role, _), usage in tree.spend_by.items():
            if role == EVALUATION_ROLE or role in EXPANSION_ROLES:
                tokens[role in EXPANSION_ROLES] += usage.tokens
        solving, improving = tokens if all(tokens) else self._seconds
        if solving <= 0 or improving <= 0:
            return 1.0
        return (improving / expansions) / (solving / evaluations)
