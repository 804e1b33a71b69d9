"""Simulate what rules of promotion promise and keep: false promotions, gain kept, promotion evaluations used.

The real loop with the default policy performs 500 searches in worlds in which every agent is as good as the seed, and
500 in worlds in which edits help or harm. After every 20 graded evaluations a round takes the candidates that dgm
itself chooses. All rules meet the same searches and the same verdicts on 100 promotion tasks, which no search sees.

Run it as ``python benchmarks/policies/promotion.py``: it takes about twenty minutes on one core and writes
``promotion.csv`` (a row per search and rule), ``promotion.md`` and ``promotion.svg`` beside it. Searches that
``promotion.csv`` holds are not repeated.
"""

import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from dgm.archive.events import PromotionDecided, PromotionStarted, Recorded, RunStarted, TaskGraded
from dgm.archive.tree import Promotions, Tree
from dgm.config import Settings
from dgm.domain import SEED, ActionId, AgentId, Born, Budget, Tally, TaskId, Verdict
from dgm.evaluation.promotion import choose_accepted, choose_candidates
from dgm.evaluation.schedule import Comparison, compare_verdicts
from dgm.search.loop import LoopHooks, Search
from dgm.simulation import virtual
from dgm.simulation.families import GROUPS
from dgm.simulation.policies import open_contender
from dgm.simulation.virtual import Latents, Memory, SimulatedWorker, key_as_commit
from dgm.simulation.world import World, open_world
from dgm.stats import promotion_level, sign_test, wilson

HERE = Path(__file__).parent
SEARCHES = 500
EVALUATIONS, EVERY = 200, 20
TASKS = 100
ALPHA = 0.05
MARGIN = 0.05
"""Difference of rates that the fixed margin asks for."""
EQUAL = {
    "harmful_only": 0.0, "step_mean": 0.0, "step_sd": 0.0, "neutral": 0.0, "drift_root": 0.0, "drift_sd": 0.0,
    "broken": 0.0, "jackpots": 0.0, "retention": 1.0,
}  # fmt: skip
"""Parameters of worlds in which no edit changes anything."""
FAMILIES = [name for name in GROUPS["reported"] if name != "hopeless"]
"""Families of worlds in which edits can help; the searches take turns."""
FIELDS = (
    "world",
    "family",
    "search",
    "rule",
    "rounds",
    "promotions",
    "false",
    "gain",
    "best_gain",
    "evaluations",
)

Tests = Mapping[AgentId, Comparison]
"""Each candidate → the incumbent and it on the promotion tasks."""
Accept = Callable[[Tests, Promotions, int], AgentId | None]
"""Decides a round from its tests, the rounds before, and the largest number of candidates."""


def certified(tests: Tests, before: Promotions, limit: int) -> AgentId | None:
    """Accept as ``dgm promote`` does."""
    level = promotion_level(ALPHA, len(before.rounds) + 1, before.count, limit)
    return choose_accepted(_p_values(tests), level)


def bonferroni(tests: Tests, _: Promotions, limit: int) -> AgentId | None:
    """Accept by the sign test at the level over all tests that are planned, although tasks are reused."""
    return choose_accepted(_p_values(tests), ALPHA / (EVALUATIONS // EVERY * limit))


def fixed_margin(tests: Tests, _: Promotions, __: int) -> AgentId | None:
    """Accept the candidate with the highest rate if it is a margin above the incumbent's."""
    best = max(tests, key=lambda agent: _difference(tests[agent]))
    return best if _difference(tests[best]) >= MARGIN else None


def best_of_k(tests: Tests, _: Promotions, __: int) -> AgentId | None:
    """Accept the candidate with the highest rate if it is above the incumbent's."""
    best = max(tests, key=lambda agent: _difference(tests[agent]))
    return best if _difference(tests[best]) > 0 else None


def _difference(pairs: Comparison) -> float:
    return pairs.second.rate - pairs.first.rate


def _p_values(tests: Tests) -> Mapping[AgentId, float]:
    return {agent: sign_test(len(pairs.gained), len(pairs.lost)) for agent, pairs in tests.items()}


RULES: Mapping[str, tuple[Accept, int]] = {
    "certified, K = 1": (certified, 1),
    "certified, K = 3": (certified, 3),
    "Bonferroni, K = 3": (bonferroni, 3),
    "margin of 5 points, K = 3": (fixed_margin, 3),
    "best of K = 3": (best_of_k, 3),
}


class Referee:
    """One rule in one search."""

    def __init__(self, world: World, accept: Accept, limit: int) -> None:
        self._world, self._accept, self._limit = world, accept, limit
        self._seen = set(world.tasks)
        self.promotions = Promotions()
        self.false = 0
        self.examined = {SEED}

    def perform_round(self, tree: Tree, latents: Latents, recommended: AgentId) -> None:
        """Perform a round if the recommended agent is new."""
        state, incumbent = self.promotions, self.promotions.incumbent
        candidates = tuple(choose_candidates(tree, state, recommended, self._limit))
        if not candidates:
            return
        scores = {
            agent: self._world.true_score(latents.of(tree.agents[agent]))
            for agent in (incumbent, *candidates)
        }
        tests = {agent: self._compare(tree, latents, incumbent, agent) for agent in candidates}
        self.examined.update(candidates)
        accepted = self._accept(tests, state, self._limit)
        number = len(state.rounds) + 1
        state.apply(
            PromotionStarted(number, incumbent, candidates, ALPHA, self._limit),
            len(tree.agents),
            tree.evaluations,
        )
        state.apply(PromotionDecided(number, accepted), len(tree.agents), tree.evaluations)
        self.false += accepted is not None and scores[accepted] <= scores[incumbent]

    def _compare(self, tree: Tree, latents: Latents, incumbent: AgentId, candidate: AgentId) -> Comparison:
        tasks = [task for task in self._world.names if task not in self._seen][:TASKS]

        def verdict(agent: AgentId, task: TaskId) -> Verdict:
            resolved = self._world.resolves(latents.of(tree.agents[agent]), task, 0)
            return Verdict.RESOLVED if resolved else Verdict.UNRESOLVED

        return compare_verdicts((task, verdict(incumbent, task), verdict(candidate, task)) for task in tasks)


def perform(kind: str, number: int) -> Iterator[tuple[object, ...]]:
    """Perform a search with all rules beside it; yield a row for each."""
    family = "hopeless" if kind == "equals" else FAMILIES[number % len(FAMILIES)]
    world = open_world(family, number, **(EQUAL if kind == "equals" else {}))
    policy, recommend = open_contender("lineage", world)
    referees = {name: Referee(world, *rule) for name, rule in RULES.items()}

    async def session() -> tuple[Tree, Latents]:
        memory = Memory(keep=policy.keeps_state)
        worker = SimulatedWorker(world, memory.tree, virtual.pass_time)
        memory.append(RunStarted(Budget(evaluations=EVALUATIONS), world.tasks))
        memory.append(memory.birth(ActionId(0), Born((), "seed", key_as_commit(world.root(), ()), "")))

        def on_event(recorded: Recorded) -> None:
            if isinstance(recorded.event, TaskGraded) and memory.tree.evaluations % EVERY == 0:
                recommended = recommend(memory.tree)
                for referee in referees.values():
                    referee.perform_round(memory.tree, worker.latents, recommended)

        hooks = LoopHooks(on_event, clock=virtual.clock)
        await Search(memory, policy, worker, Settings(seed=number, workers=1), hooks).go()
        return memory.tree, worker.latents

    tree, latents = virtual.run(session())
    scores = [world.true_score(latents.of(agent)) for agent in tree.agents]
    best_gain = max(scores) - scores[SEED]
    for name, referee in referees.items():
        state = referee.promotions
        gain = scores[state.incumbent] - scores[SEED]
        rounds, evaluations = len(state.rounds), TASKS * len(referee.examined) * bool(state.rounds)
        yield kind, family, number, name, rounds, state.count, referee.false, gain, best_gain, evaluations


def main() -> None:
    """Simulate what is missing; write the table and the figure."""
    file = HERE / "promotion.csv"
    rows = list(csv.DictReader(file.open())) if file.exists() else []
    done = {(row["world"], int(row["search"])) for row in rows}
    with file.open("a", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        if not rows:
            writer.writerow(FIELDS)
        for number in range(SEARCHES):
            for kind in ("equals", "gains"):
                if (kind, number) not in done:
                    for row in perform(kind, number):
                        writer.writerow([f"{cell:.4f}" if isinstance(cell, float) else cell for cell in row])
            out.flush()
            sys.stderr.write(f"\r{number + 1} of {SEARCHES}")
    summary = summarise(list(csv.DictReader(file.open())))
    (HERE / "promotion.md").write_text("\n".join(table(summary)) + "\n")
    (HERE / "promotion.svg").write_text(figure(summary))


def summarise(rows: Sequence[Mapping[str, str]]) -> Mapping[tuple[str, str], Mapping[str, float]]:
    """Return the means of each kind of world and rule."""
    groups: dict[tuple[str, str], list[Mapping[str, str]]] = defaultdict(list)
    for row in rows:
        groups[row["world"], row["rule"]].append(row)
    summary = {}
    for key, group in groups.items():
        n, false = len(group), sum(int(row["false"]) > 0 for row in group)
        low, high = wilson(Tally(false, n - false))
        best = sum(float(row["best_gain"]) for row in group)
        mean = {
            name: sum(float(row[name]) for row in group) / n
            for name in ("promotions", "rounds", "evaluations")
        }
        kept = sum(float(row["gain"]) for row in group) / best if best else 0.0
        summary[key] = {"n": n, "false": false / n, "low": low, "high": high, "kept": kept, **mean}
    return summary


def table(summary: Mapping[tuple[str, str], Mapping[str, float]]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| searches | rule | with a false promotion [95 %] | gain kept | promotions | rounds | evaluations |"
    yield "|---|---|---|---|---|---|---|"
    for kind in ("equals", "gains"):
        for rule in RULES:
            row = summary[kind, rule]
            kept = "" if kind == "equals" else f"{row['kept']:.0%}"
            yield (
                f"| {row['n']:.0f} {'among equals' if kind == 'equals' else 'with real gains'} | {rule} "
                f"| {row['false']:.1%} [{row['low']:.1%}, {row['high']:.1%}] | {kept} | {row['promotions']:.2f} "
                f"| {row['rounds']:.1f} | {row['evaluations']:.0f} |"
            )


def figure(summary: Mapping[tuple[str, str], Mapping[str, float]]) -> str:
    """Return an SVG: for each rule false promotions among equals, with their interval, and the gain kept."""
    width, row_height, left, panel = 760, 34, 190, 250
    height = 70 + row_height * len(RULES)
    second = left + panel + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="white"/><g font-size="13">',
        f'<text x="{left}" y="20">searches among equals with a false promotion</text>',
        f'<text x="{second}" y="20">share of the best gain kept</text>',
    ]
    highest = max(summary["equals", rule]["high"] for rule in RULES)
    scale = panel / (highest * 1.05)
    bound = left + ALPHA * scale
    parts.append(
        f'<line x1="{bound:.1f}" x2="{bound:.1f}" y1="30" y2="{height - 30}" stroke="#b00" stroke-dasharray="4 3"/>'
        f'<text x="{bound + 4:.1f}" y="{height - 12}" fill="#b00">α = {ALPHA:.0%}</text>'
    )
    for number, rule in enumerate(RULES):
        y = 50 + row_height * number
        equals, gains = summary["equals", rule], summary["gains", rule]
        low, at, high = (left + equals[name] * scale for name in ("low", "false", "high"))
        colour = "#0a6" if rule.startswith("certified") else "#567"
        parts.append(
            f'<text x="{left - 10}" y="{y + 5}" text-anchor="end">{rule}</text>'
            f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
            f'<circle cx="{at:.1f}" cy="{y}" r="5" fill="{colour}"/>'
            f'<rect x="{second}" y="{y - 9}" width="{max(0.0, gains["kept"]) * 200:.1f}" height="18" fill="{colour}"/>'
            f'<text x="{second + max(0.0, gains["kept"]) * 200 + 6:.1f}" y="{y + 5}">{gains["kept"]:.0%}</text>'
        )
    return "\n".join([*parts, "</g></svg>"]) + "\n"


if __name__ == "__main__":
    main()
