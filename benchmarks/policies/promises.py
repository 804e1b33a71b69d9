"""Simulate whether the record of kept predictions helps the bandit among operators (``operators.promises``).

The real loop with the policy ``hgm`` performs each search in worlds of the family ``operators``, whose budget is time.
Every edit names ten tasks that its parent failed. How well it chooses them differs:

- ``random``: any of them. A better child resolves more, so what is kept says something of the child.
- ``insight``: an edit that helps knows what it helps: a prediction is right with the probability
  1 / (1 + exp(-20 (child's true score - parent's))).
- ``noise``: a prediction is right with a probability that each operator has by chance, whatever its children do.

Run it as ``python benchmarks/policies/promises.py``: it takes about five minutes on one core and writes
``promises.csv`` (a row per search and choice) and ``promises.md`` beside it. Searches that ``promises.csv`` holds are
not repeated.
"""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import exp
from pathlib import Path
from random import Random

from dgm.archive.events import RunStarted
from dgm.archive.tree import Tree
from dgm.config import LimitSettings, Settings
from dgm.domain import SEED, Action, ActionId, Born, Expand, Outcome, Prediction, Verdict
from dgm.policies.registry import best_agent, open_policy
from dgm.search.loop import LoopHooks, Search
from dgm.simulation import virtual
from dgm.simulation.families import OPERATORS
from dgm.simulation.trial import Trial, budget_of, quiet
from dgm.simulation.virtual import Latents, Memory, SimulatedWorker, key_as_commit
from dgm.simulation.world import NEEDS, World, open_world
from dgm.stats import paired_bootstrap

HERE = Path(__file__).parent
SEARCHES, BUDGET = 200, 400
PREDICTIONS = 10
STEEPNESS = 20.0
CHOICES: Mapping[str, Mapping[str, object]] = {
    "equal weights": {},
    "bandit": {"choice": "bandit"},
    "bandit, random predictions": {"choice": "bandit", "promises": True},
    "bandit, predictions with insight": {"choice": "bandit", "promises": True},
    "bandit, predictions of noise": {"choice": "bandit", "promises": True},
}
"""Choice among operators → its settings. Without ``promises`` the predictions make no difference."""
FIELDS = ("search", "choice", "root", "final", "kept", "tested", "expansions")


class PromisingWorker(SimulatedWorker):
    """A simulated worker whose edits state predictions."""

    def __init__(self, choice: str, world: World, tree: Tree) -> None:
        super().__init__(world, tree, virtual.pass_time)
        self._kind, self._simulated, self._archive = choice.rpartition(" ")[2], world, tree

    async def perform(self, action: ActionId, what: Action) -> Outcome:
        """Perform an action; add predictions to a child that was born."""
        outcome = await super().perform(action, what)
        if isinstance(outcome, Born) and isinstance(what, Expand):
            return replace(outcome, predictions=tuple(map(Prediction, self._promise(action, what))))
        return outcome

    def _promise(self, action: ActionId, what: Expand) -> Sequence[str]:
        tree, world = self._archive, self._simulated
        parents = [self.latents.of(tree.agents[parent]) for parent in what.parents]
        child = world.child(parents, tree.child_number(action), what.operator)
        rng = Random(f"{self._kind}/{child.key.hex()}")
        verdicts = tree.verdicts(what.parents[0]).items()
        failed = [task for task, verdict in verdicts if verdict is Verdict.UNRESOLVED]
        rng.shuffle(failed)
        if self._kind not in ("insight", "noise"):
            return failed[:PREDICTIONS]
        by_outcome = {True: [], False: []}
        for task in failed:
            by_outcome[world.resolves(child, task, 0)].append(task)
        right = Random(f"{world.seed}/{what.operator}").random()
        if self._kind == "insight":
            right = 1 / (1 + exp(-STEEPNESS * (world.true_score(child) - world.true_score(parents[0]))))
        promised = []
        while len(promised) < min(PREDICTIONS, len(failed)):
            tasks = by_outcome[rng.random() < right]
            if not tasks:
                break
            promised.append(tasks.pop())
        return promised


def perform(number: int, choice: str) -> tuple[object, ...]:
    """Perform a search; return its row."""
    world = open_world(OPERATORS, number)
    settings = Settings(
        seed=number,
        workers=1,
        operator="+".join(NEEDS),
        operators=CHOICES[choice],
        policy={"name": "hgm"},
        limits=LimitSettings(stillborn_in_a_row=0),
    )
    policy = open_policy(settings, NEEDS)

    async def session() -> tuple[Tree, Latents]:
        memory = Memory(keep=policy.keeps_state)
        worker = PromisingWorker(choice, world, memory.tree)
        memory.append(RunStarted(budget_of(Trial("hgm", OPERATORS, number, BUDGET)), world.tasks))
        memory.append(memory.birth(ActionId(0), Born((), "seed", key_as_commit(world.root(), ()), "")))
        hooks = LoopHooks(clock=virtual.clock, open_watch=None)
        await Search(memory, policy, worker, settings, hooks).go()
        return memory.tree, worker.latents

    tree, latents = virtual.run(session())
    promises = tree.clade_promises(SEED)
    best = world.true_score(latents.of(tree.agents[best_agent(settings.policy, tree)]))
    root = world.true_score(world.root())
    return number, choice, root, best, promises.resolved, promises.n, tree.expansions_begun


def main() -> None:
    """Simulate what is missing; write the table."""
    quiet()
    file = HERE / "promises.csv"
    rows = list(csv.DictReader(file.open())) if file.exists() else []
    done = {(int(row["search"]), row["choice"]) for row in rows}
    with file.open("a", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        if not rows:
            writer.writerow(FIELDS)
        for number in range(SEARCHES):
            for choice in CHOICES:
                if (number, choice) not in done:
                    row = perform(number, choice)
                    writer.writerow([f"{cell:.4f}" if isinstance(cell, float) else cell for cell in row])
            out.flush()
            sys.stderr.write(f"\r{number + 1} of {SEARCHES}")
    (HERE / "promises.md").write_text("\n".join(table(list(csv.DictReader(file.open())))) + "\n")


def table(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield the lines of the table: means, and paired differences to the bandit without predictions."""
    yield "| choice among operators | final score | difference to the bandit [95 %] | won | kept of tested |"
    yield "|---|---|---|---|---|"
    by_choice = {choice: [row for row in rows if row["choice"] == choice] for choice in CHOICES}
    finals = {choice: [float(row["final"]) for row in own] for choice, own in by_choice.items()}
    for choice, own in by_choice.items():
        pairs = [a - b for a, b in zip(finals[choice], finals["bandit"], strict=True)]
        low, high = paired_bootstrap(pairs)
        n, won = len(pairs), sum((d > 0) + (d == 0) / 2 for d in pairs)
        kept, tested = (sum(int(row[name]) for row in own) for name in ("kept", "tested"))
        yield (
            f"| {choice} | {sum(finals[choice]) / n:.3f} | {sum(pairs) / n:+.3f} [{low:+.3f}, {high:+.3f}] "
            f"| {won / n:.0%} | {kept / max(1, tested):.0%} of {tested / n:.0f} |"
        )


if __name__ == "__main__":
    main()
