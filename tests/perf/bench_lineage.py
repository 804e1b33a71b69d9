"""How long a decision of ``lineage`` takes, sweeps and the folding of events included.

The bounds: 10 ms on average at 1,000 agents, 150 ms at 10,000. The tree grows as searches grow it (each child of a
recent agent or of any), with three verdicts per agent; then a search goes on for 200 decisions and is timed.
"""

import sys
import time
from random import Random

from dgm.archive.events import ActionStarted, AgentBorn, Event, Recorded, RunStarted, TaskGraded
from dgm.archive.tree import Tree
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Budget, Evaluate, Evaluation, TaskId, Verdict
from dgm.policies.lineage import LineageRecommendation
from dgm.policies.registry import open_policy
from dgm.policies.rules import Kit

TASKS = tuple(TaskId(f"task-{number}") for number in range(60))
VERDICTS = 3
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
        self.add(AgentBorn(ActionId(action), agent, parents, f"c{agent}", "self-edit", ""))

    def grade(self, what: Evaluate) -> None:
        """Starts and grades."""
        number = self.tree.next_action
        self.add(ActionStarted(number, what))
        solved = self.chance.random() < 0.4 + 0.1 * (what.agent % 3)
        verdict = Verdict.RESOLVED if solved else Verdict.UNRESOLVED
        self.add(TaskGraded(number, Evaluation(what.agent, what.task, 0, verdict, "")))

    def grow(self, agents: int) -> None:
        """Up to so many agents, without asking the policy, and drawing conclusions at the end only."""
        posterior = self.policy._gate._fold.posterior
        posterior.graded = posterior.record
        while len(self.tree.agents) < agents:
            n = len(self.tree.agents)
            low = max(n - RECENT, 0) if self.chance.random() < 0.7 else 0
            self.birth((AgentId(self.chance.randrange(low, n)),))
            for task in self.chance.sample(TASKS, VERDICTS):
                self.grade(Evaluate(AgentId(n), task))
        del posterior.graded
        for _ in range(4):
            posterior.sweep()

    def decide(self, times: int) -> float:
        """Milliseconds per decision, over so many."""
        self.seconds = 0.0
        for number in range(times):
            began = time.process_time()
            action = self.policy.next(self.tree, Random(number))
            self.seconds += time.process_time() - began
            if isinstance(action, Evaluate):
                self.grade(action)
            elif action is not None:
                number = self.tree.next_action
                self.add(ActionStarted(number, action))
                self.birth(action.parents, number)
        return 1000 * self.seconds / times


def main() -> None:
    """Prints milliseconds per decision, and per recommendation, by number of agents."""
    sizes = [int(size) for size in sys.argv[1:]] or [300, 1_000, 10_000]
    for size in sizes:
        growth = Growth(size)
        growth.grow(size)
        decision = growth.decide(200)
        began = time.process_time()
        LineageRecommendation(Kit()).recommend(growth.tree)
        handed_out = 1000 * (time.process_time() - began)
        print(
            f"{size:>6} agents, {max(growth.tree.depths)} deep: {decision:6.2f} ms a decision, "
            f"{handed_out:7.1f} ms a recommendation"
        )


if __name__ == "__main__":
    main()
