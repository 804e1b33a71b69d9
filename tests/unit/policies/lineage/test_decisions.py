"""The decisions of ``lineage`` in simulated searches, as recorded from an earlier version.

``python -m tests.unit.policies.lineage.test_decisions`` records them anew.
"""

from pathlib import Path

import pytest

from dgm.config import PolicySettings
from dgm.domain import Budget, Evaluate, TaskId
from dgm.policies.registry import best_agent
from tests.support.runs.life import Life

RECORDED = Path(__file__).parents[3] / "support" / "golden" / "lineage.txt"
MANY = tuple(TaskId(f"task-{n:02}") for n in range(40))
SEARCHES = {
    "measured in tokens": lambda: Life(1, budget=Budget(evaluations=260), tasks=MANY, faults=0, invalid=0, tokens=900),
    "measured in seconds": lambda: Life(2, 3, budget=Budget(evaluations=150), tasks=MANY, invalid=0),
    "faults": lambda: Life(3, budget=Budget(evaluations=120, expansion_cost=1.0), faults=0.2),
    "many workers": lambda: Life(4, 12, budget=Budget(evaluations=150, expansion_cost=2.0), tasks=MANY, faults=0.2),
    "often broken": lambda: Life(5, budget=Budget(evaluations=820, expansion_cost=0.5), tasks=MANY, broken=0.8),
    "no limit of evaluations": lambda: Life(6, 2, budget=Budget(agents=12), tasks=MANY[:6], invalid=0, tokens=100),
}  # fmt: skip


def search(name: str) -> str:
    """Return decisions as text: x and parent, agent.task, or - for none; = and the agent recommended at times."""
    life, words = SEARCHES[name](), []
    decide = life.decide

    def note():
        action = decide()
        if isinstance(action, Evaluate):
            words.append(f"{action.agent}.{life.log.tree.tasks.index(action.task)}")
        else:
            words.append("x" + "+".join(map(str, action.parents)) if action else "-")
        if len(words) % 40 == 0:
            words.append(f"={best_agent(PolicySettings(name='lineage'), life.log.tree)}")
        return action

    life.decide = note
    life.live()
    words.append(f"={best_agent(PolicySettings(name='lineage'), life.log.tree)}")
    return " ".join(words)


@pytest.mark.parametrize("name", SEARCHES)
def test_decisions_are_those_recorded(name):
    recorded = dict(line.split(": ", 1) for line in RECORDED.read_text().splitlines())
    assert search(name).split() == recorded[name].split()


if __name__ == "__main__":
    RECORDED.write_text("".join(f"{name}: {search(name)}\n" for name in SEARCHES))
