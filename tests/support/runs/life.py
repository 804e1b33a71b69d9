"""A search by several workers whose outcomes and faults are drawn from one random stream."""

from random import Random

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    ChildProposed,
    ModelCalled,
    TaskGraded,
)
from dgm.domain import (
    Action,
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Cost,
    Evaluate,
    Evaluation,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from dgm.policies.limits import evaluations_left
from tests.support.runs.trees import TASKS, Log, named


class Life:
    """A simulated search under a policy; equal arguments give equal searches."""

    def __init__(
        self,
        seed: int,
        workers: int = 1,
        *,
        policy: str = "lineage",
        budget: Budget = Budget(evaluations=40, expansion_cost=1.0),  # noqa: B008  (frozen)
        tasks: tuple[TaskId, ...] = TASKS,
        faults: float = 0.1,
        invalid: float = 0.1,
        broken: float = 0.1,
        tokens: int = 0,
    ) -> None:
        """Begin a search.

        Args:
            seed: of outcomes and decisions.
            workers: actions at once.
            policy: by name.
            budget: of the run.
            tasks: of the run, each one a little harder than the one before.
            faults: chance that an action is lost, a verdict is withdrawn, or a child waits for approval.
            invalid: chance that an evaluation ends without a verdict.
            broken: chance that a child solves nothing.
            tokens: of an evaluation's model calls; an expansion takes three times as many.
        """
        self.log = Log(budget, tasks)
        self.log.born()
        self.policy = named(policy)
        self.decisions: list[tuple[int, Action | None]] = []
        """Number of known events, and the decision."""
        self._seed, self._workers, self._tokens = seed, workers, tokens
        self._faults, self._invalid, self._broken = faults, invalid, broken
        self._chance = Random(seed)
        self._observed = 0
        self._skills = [0.4]

    def decide(self) -> Action | None:
        events = self.log.events
        for event in events[self._observed :]:
            self.policy.observe(event)
        self._observed = len(events)
        action = self.policy.next(self.log.tree, Random(f"{self._seed}/{self.log.tree.next_action}"))
        self.decisions.append((len(events), action))
        return action

    def live(self, turns: int = 10_000) -> None:
        """Search until the budget is spent."""
        tree = self.log.tree
        for _ in range(turns):
            while len(tree.pending) < self._workers and tree.to_redo():
                number, what = next(iter(tree.to_redo().items()))
                self.log.add(ActionStarted(number, what, again=True))
            left = evaluations_left(tree)
            if (left is None or left >= 1) and len(tree.pending) < self._workers:
                action = self.decide()
                if action is not None:
                    if isinstance(action, Evaluate):
                        assert action.task not in tree.tried(action.agent)
                    self.log.add(ActionStarted(tree.next_action, action))
                    continue
            self._answer_waiting(always=not tree.pending)
            if tree.pending:
                self._end(self._chance.choice(list(tree.pending)))
            elif not tree.to_redo():
                break

    def _answer_waiting(self, always: bool) -> None:
        for number, waiting in list(self.log.tree.waiting.items()):
            luck = self._chance.random()
            if luck < 0.2:
                child = waiting.child
                dead = Stillborn(child.parents, child.operator, "approval", "no", decided="a person")
                self.log.add(AgentStillborn(number, dead))
            elif always or luck < 0.6:
                self._birth(number, waiting.child.parents)

    def _birth(self, number: ActionId, parents: tuple[AgentId, ...]) -> None:
        child, luck = AgentId(len(self.log.tree.agents)), self._chance
        skill = self._skills[parents[0]] + luck.gauss(0.02, 0.1)
        self._skills.append(0.0 if luck.random() < self._broken else min(max(skill, 0.0), 0.95))
        cost = Cost(seconds=luck.uniform(1, 9))
        self.log.add(AgentBorn(number, child, Born(parents, "self-edit", f"c{child}", "", cost)))

    def _end(self, number: ActionId) -> None:
        what, luck = self.log.tree.pending[number], self._chance
        if luck.random() < self._faults:
            self.log.add(ActionLost(number, "killed", final=luck.random() < 0.2))
            return
        evaluates = isinstance(what, Evaluate)
        if self._tokens:
            usage = Usage(1, int(self._tokens * luck.uniform(0.5, 1.5)) * (1 if evaluates else 3), 0)
            self.log.add(ModelCalled(number, 1, "m", "solve" if evaluates else "improve", usage=usage))
        if isinstance(what, Evaluate):
            self._grade(number, what)
        elif luck.random() < 0.1:
            self.log.add(AgentStillborn(number, Stillborn(what.parents, "self-edit", "check", "")))
        elif luck.random() < self._faults:
            self.log.add(ChildProposed(number, Born(what.parents, "self-edit", CommitId("c" * 40), "")))
        else:
            self._birth(number, what.parents)

    def _grade(self, number: ActionId, what: Evaluate) -> None:
        luck, tasks = self._chance, self.log.tree.tasks
        easiness = 1.5 - tasks.index(what.task) / len(tasks)
        solved = luck.random() < self._skills[what.agent] * easiness
        verdict = Verdict.RESOLVED if solved else Verdict.UNRESOLVED
        if luck.random() < self._invalid:
            verdict = Verdict.INVALID
        cost = Cost(seconds=luck.uniform(1, 3))
        self.log.add(TaskGraded(number, Evaluation(what.agent, what.task, 0, verdict, "", cost=cost)))
        if verdict is not Verdict.INVALID and luck.random() < self._faults / 5:
            self.log.withdrawn()
