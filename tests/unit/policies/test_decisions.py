"""Recorded decisions of every policy and operator rule, in searches where everything that can happen does.

``python -m tests.unit.policies.test_decisions [NAME …]`` records them again.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from dgm.analysis.budgets import has_evaluation_room, has_room_for
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    ChildProposed,
    ModelCalled,
    Recorded,
    RunStarted,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.tree import Tree
from dgm.config import Settings, resolve
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    CommitId,
    Cost,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    Usage,
    Verdict,
)
from dgm.policies.registry import POLICIES, best_agent, open_policy
from dgm.protocols import Needs
from dgm.search.loop import decision_stream
from dgm.simulation.trial import Trial, world_of
from dgm.simulation.world import World

pytestmark = pytest.mark.slow

FILE = Path(__file__).with_name("decisions.json")
NEEDS = {
    "self-edit": Needs(),
    "diagnose": Needs(failures=1, aims=("unresolved", "empty")),
    "crossover": Needs(parents=2),
    "invent": Needs(archive=4),
    "module": Needs(aims=("loop", "tools", "context")),
}
ALL = "operator=self-edit+module+diagnose+crossover+invent"
CASES: dict[str, list[str]] = {
    **{name: [f"policy.name={name}"] for name in POLICIES},
    "alpha": ["policy.name=hgm", "policy.alpha=0.8"],
    "hgm by dgm": ["policy.name=hgm", "policy.parent=dgm", "policy.recommendation=lineage"],
    "hgm by lineage": ["policy.name=hgm", "policy.parent=lineage", "policy.task=informative"],
    "lineage by hgm": ["policy.name=lineage", "policy.gate=hgm", "policy.task=fixed-order"],
    "dgm by pareto": ["policy.name=dgm", "policy.evaluation=pareto", "policy.task=pareto"],
    "pareto by published": [
        "policy.name=pareto",
        "policy.parent=hgm-published",
        "policy.evaluation=hgm-published",
        "policy.gate=staged",
    ],
    "novelty by chance": ["policy.name=novelty", "policy.gate=hgm", "policy.evaluation=random"],
    "operators": ["policy.name=hgm", "policy.alpha=0.8", ALL, "operators.weights.module=3"],
    "operators of dgm": ["policy.name=dgm", ALL],
    "one operator": ["policy.name=uct", "operator=module"],
    "operators by bandit": ["policy.name=hgm", "policy.alpha=0.8", ALL, "operators.choice=bandit"],
    "parts by bandit": [
        "policy.name=random",
        "policy.alpha=0.8",
        "operator=module+crossover+self-edit",
        "operators.parts=bandit",
    ],
}
"""Name → settings."""
SEARCHES = (
    ("drift", 1, Budget(evaluations=150, expansion_cost=0.5)),
    ("broken", 3, Budget(evaluations=200, agents=16, expansion_cost=4.0)),
    ("skills", 8, Budget(evaluations=180, expansion_cost=1.0)),
    ("jackpots", 4, Budget(usd=25.0)),
    ("broken", 2, Budget(tokens=400_000, seconds=40_000.0)),
    ("drift", 20, Budget(evaluations=220)),
)
"""Family of worlds, workers and budget; the first search also counts flips."""
MOST_EVENTS = 900
TASKS = 30


class Search:
    """A search in a simulated world whose actions fail in every way, end in any order, and survive resumes."""

    def __init__(self, settings: Settings, number: int) -> None:
        self.family, self.workers, self.budget = SEARCHES[number]
        self.settings = settings.model_copy(update={"seed": number})
        self.flips = number == 0
        self.random = Random(number)
        self.world: World = world_of(Trial("random", self.family, number))
        self.tree, self.events = Tree(), list[Recorded]()
        self.latents = [self.world.root()]
        self.running: dict[ActionId, Evaluate | Expand] = {}
        self.at, self.steps = 0.0, list[str]()
        self.begin(resumed=False)
        self.add(AgentBorn(ActionId(0), AgentId(0), Born((), "seed", CommitId("c0"), "")))

    def begin(self, *, resumed: bool) -> None:
        for action in [*self.running]:
            self.add(ActionLost(self.finish(action), "killed"))
        self.policy, self.observed = open_policy(self.settings, NEEDS), 0
        self.add(RunStarted(self.budget, self.world.tasks[:TASKS], resumed, self.flips))

    def add(self, event: object) -> None:
        self.at += self.random.choice((1.0, 7.0, 45.0))
        self.events.append(Recorded(len(self.events) + 1, self.at, event))
        self.tree.apply(self.events[-1])
        if len(self.events) % 25 == 0 and self.tree.agents:
            self.steps.append(f"best {best_agent(self.settings.policy, self.tree)}")

    def finish(self, action: ActionId) -> ActionId:
        del self.running[action]
        return action

    def go(self) -> list[str]:
        while len(self.events) < MOST_EVENTS and self.step():
            pass
        self.steps.append(f"best {best_agent(self.settings.policy, self.tree)}")
        return self.steps

    def step(self) -> bool:
        tree, chance = self.tree, self.random.random()
        if chance < 0.01:
            self.begin(resumed=True)
        if tree.waiting and (self.random.random() < 0.2 or not self.running):
            self.answer()
        spare = len(self.running) < self.workers and (chance < 0.7 or not self.running)
        redo = next((item for item in tree.to_redo().items() if item[0] not in self.running), None)
        if spare and redo:
            self.start(*redo, again=True)
        elif spare and self.decide():
            pass
        elif self.running:
            self.end(self.random.choice(sorted(self.running)))
        else:
            return bool(tree.waiting)
        return True

    def decide(self) -> bool:
        tree = self.tree
        if not has_evaluation_room(tree):
            return False
        if self.policy.keeps_state:
            for event in self.events[self.observed :]:
                self.policy.observe(event)
        self.observed = len(self.events)
        action = self.policy.next(tree, decision_stream(self.settings.seed, tree.next_action))
        self.steps.append(describe(action))
        if action is None or not has_room_for(tree, action):
            return False
        self.start(tree.next_action, action)
        return True

    def start(self, number: ActionId, action: Evaluate | Expand, *, again: bool = False) -> None:
        self.add(ActionStarted(number, action, again))
        self.running[number] = action

    def end(self, number: ActionId) -> None:
        action, chance = self.running[number], self.random.random()
        usage = Usage(
            1, self.random.randrange(500, 3000), self.random.randrange(100), self.random.random() / 2
        )
        role = "solve" if isinstance(action, Evaluate) else "improve"
        self.add(ModelCalled(number, 0, "m", role, usage=usage))
        self.finish(number)
        cost = Cost(usage, self.random.uniform(10, 900))
        if chance < 0.08:
            self.add(ActionLost(number, "lost", final=chance < 0.03))
        elif isinstance(action, Expand):
            self.birth(number, action, cost, chance)
        else:
            solved = self.world.resolves(self.latents[action.agent], action.task, 0)
            verdict = Verdict.RESOLVED if solved else Verdict.UNRESOLVED
            verdict = Verdict.INVALID if chance > 0.93 else verdict
            self.add(TaskGraded(number, Evaluation(action.agent, action.task, 0, verdict, "", cost=cost)))
            if 0.9 < chance < 0.93:
                self.add(VerdictWithdrawn(number, len(self.events), action, verdict, "refused"))

    def birth(self, number: ActionId, action: Expand, cost: Cost, chance: float) -> None:
        if chance < 0.35:
            stage = "expired" if chance < 0.12 else "check"
            self.add(AgentStillborn(number, Stillborn(action.parents, action.operator, stage, "", cost)))
        elif chance < 0.5:
            born = Born(action.parents, action.operator, CommitId(f"w{number}"), "", cost)
            self.add(ChildProposed(number, born))
        else:
            self.born(number, action.parents, action.operator, cost)

    def born(self, number: ActionId, parents: tuple[AgentId, ...], operator: str, cost: Cost) -> None:
        child = AgentId(len(self.tree.agents))
        self.latents.append(self.world.child([self.latents[parent] for parent in parents], int(number)))
        self.add(AgentBorn(number, child, Born(parents, operator, CommitId(f"c{child}"), "", cost)))

    def answer(self) -> None:
        number, waiting = next(iter(self.tree.waiting.items()))
        child = waiting.child
        if self.random.random() < 0.7:
            self.born(number, child.parents, child.operator, child.cost)
        else:
            stillborn = Stillborn(child.parents, child.operator, "approval", "", child.cost, "a person")
            self.add(AgentStillborn(number, stillborn))


def describe(action: Evaluate | Expand | None) -> str:
    match action:
        case Evaluate(agent, task, attempt):
            return f"{agent} on {task}" + (f" ({attempt})" if attempt else "")
        case Expand(parents, operator):
            return f"child of {','.join(map(str, parents))} by {operator} {action.aim}".rstrip()
        case _:
            return "wait"


def record(name: str) -> dict[str, object]:
    """Return the number of decisions, the first of them, and a digest of each search."""
    settings = resolve(None, CASES[name], {})
    searches = [Search(settings, number).go() for number in range(len(SEARCHES))]
    return {
        "decisions": sum(not step.startswith("best") for steps in searches for step in steps),
        "first": "; ".join(searches[2][:8]),
        "digests": " ".join(sha256("\n".join(steps).encode()).hexdigest()[:12] for steps in searches),
    }


@pytest.mark.parametrize("name", CASES)
def test_decisions_are_those_recorded(name):
    recorded = json.loads(FILE.read_text())[name]
    assert recorded["decisions"] >= 400
    assert record(name) == recorded


if __name__ == "__main__":
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    new = {name: record(name) for name in sys.argv[1:] or CASES}
    FILE.write_text(json.dumps(dict(sorted({**known, **new}.items())), indent=1) + "\n")
