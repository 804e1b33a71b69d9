"""How long a decision of ``lineage`` takes, sweeps and the folding of events included.

The bounds: 10 ms on average at 1,000 agents, 150 ms at 10,000. The tree grows as searches grow it (each child of a
recent agent or of any), with three verdicts per agent; then a search goes on for 200 decisions and is timed, with one
worker and with twenty: what is under way has to be reckoned with.
"""

import sys
import time
from collections import deque
from random import Random

from dgm.archive.events import ActionStarted, AgentBorn, Event, Recorded, RunStarted, TaskGraded
from dgm.archive.tree import Tree
from dgm.config import Settings
from dgm.domain import (
    Action,
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Evaluate,
    Evaluation,
    TaskId,
    Verdict,
)
from dgm.policies.lineage import Lineage, recommend
from dgm.policies.registry import open_policy

TASKS = tuple(TaskId(f"task-{number}") for number in range(60))
VERDICTS = 3
DECISIONS = 200
WORKERS = (1, 20)
RECENT = 10


class Growth:
    """A run that goes on."""

    def __init__(self, seed: int) -> None:
        self.policy = open_policy(Settings(policy={"name": "lineage"}))
        self.tree = Tree()
        self.seconds = 0.0
        self.seq = 0
        self.chance = Random(seed)
        self.add(RunStarted(Budget(), TASKS))
        self.birth(())

    def add(self, event: Event) -> None:
        """Applies and observes."""
        self.seq += 1
        recorded = Recorded(self.seq, float(self.seq), event)
        self.tree.apply(recorded)
        began = time.process_time()
        self.policy.observe(recorded)
        self.seconds += time.process_time() - began

    def birth(self, parents: tuple[AgentId, ...], action: int = 0) -> None:
        """A child."""
        agent = AgentId(len(self.tree.agents))
        self.add(AgentBorn(ActionId(action), agent, Born(parents, "self-edit", CommitId(f"c{agent}"), "")))

    def start(self, what: Action) -> ActionId:
        """The action is under way."""
        number = self.tree.next_action
        self.add(ActionStarted(number, what))
        return number

    def end(self, number: ActionId, what: Action) -> None:
        """A verdict, or a child."""
        if not isinstance(what, Evaluate):
            self.birth(what.parents, number)
            return
        solved = self.chance.random() < 0.4 + 0.1 * (what.agent % 3)
        verdict = Verdict.RESOLVED if solved else Verdict.UNRESOLVED
        self.add(TaskGraded(number, Evaluation(what.agent, what.task, 0, verdict, "")))

    def grow(self, agents: int) -> None:
        """Up to so many agents, without asking the policy, and drawing conclusions at the end only."""
        posterior = next(part for part in self.policy._observers if isinstance(part, Lineage)).posterior
        posterior.graded = posterior.record
        while len(self.tree.agents) < agents:
            n = len(self.tree.agents)
            low = max(n - RECENT, 0) if self.chance.random() < 0.7 else 0
            self.birth((AgentId(self.chance.randrange(low, n)),))
            for task in self.chance.sample(TASKS, VERDICTS):
                what = Evaluate(AgentId(n), task)
                self.end(self.start(what), what)
        del posterior.graded
        for _ in range(4):
            posterior.sweep()

    def decide(self, workers: int) -> float:
        """Milliseconds per decision, over ``DECISIONS`` once all workers have something to do."""
        under_way: deque[tuple[ActionId, Action]] = deque()
        for number in range(1 - workers, DECISIONS):
            if not number:
                self.seconds = 0.0
            began = time.process_time()
            action = self.policy.next(self.tree, Random(number))
            self.seconds += time.process_time() - began
            if action is not None:
                under_way.append((self.start(action), action))
            if len(under_way) == workers:
                self.end(*under_way.popleft())
        while under_way:
            self.end(*under_way.popleft())
        return 1000 * self.seconds / DECISIONS


def main() -> None:
    """Prints milliseconds per decision, and per recommendation, by number of agents."""
    sizes = [int(size) for size in sys.argv[1:]] or [300, 1_000, 10_000]
    for size in sizes:
        growth = Growth(size)
        growth.grow(size)
        said = ", ".join(f"{growth.decide(workers):6.2f} ms with {workers} at work" for workers in WORKERS)
        began = time.process_time()
        recommend(growth.tree)
        handed_out = 1000 * (time.process_time() - began)
        print(
            f"{size:>6} agents, {max(growth.tree.depths)} deep: a decision {said}; "
            f"{handed_out:7.1f} ms a recommendation"
        )


if __name__ == "__main__":
    main()
