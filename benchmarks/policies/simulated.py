"""Simulate the studies of docs/evidence/policies.md and print their tables.

Each study's searches are kept in dist/simulated, so that only what is missing is performed: two hours from
nothing on two cores. Run it as ``python benchmarks/policies/simulated.py > tables.md``.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dgm
from dgm.simulation.measures import MEAN, Standing

FOLDER = Path(__file__).parents[2] / "dist" / "simulated"
ALL = [
    "oracle", "lineage", "random", "dgm", "no-archive", "no-self-improvement", "hgm-published", "best-of-n", "greedy",
    "sica", "uct", "hyperagents", "novelty", "pareto", "weighted", "adas",
]  # fmt: skip
FOUR: dict[str, Any] = {"policies": ["lineage", "dgm", "best-of-n"], "worlds": "2000:2030"}
STUDIES: dict[str, dict[str, Any]] = {
    "All policies": {"policies": ALL, "worlds": "2000:2100"},
    "Worlds that no version had met": {"worlds": "9400:9500"},
    "Reserved families": {"families": ["reserved"], "worlds": "6000:6100"},
    "Budget 200": {**FOUR, "budget": 200},
    "Budget 800": FOUR,
    "Budget 3000": {**FOUR, "budget": 3000},
    "Expansions that cost nothing": {**FOUR, "expansion_cost": 0.0},
    "Expansions that cost 5 evaluations": {**FOUR, "expansion_cost": 5.0},
    "Expansions that cost 10 evaluations": {**FOUR, "expansion_cost": 10.0},
    "20 workers": {**FOUR, "workers": 20},
    "64 workers": {**FOUR, "workers": 64},
}
COLUMNS = (
    "policy",
    "final",
    "to `hgm` [95 %]",
    "won",
    "area",
    "speed",
    "regret",
    "to oracle",
    "stuck",
    "agents",
)


def main() -> None:
    """Simulate what is missing, and print all tables as Markdown."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for title, arguments in STUDIES.items():
        sys.stderr.write(f"{title}\n")
        file = FOLDER / f"{title.replace(' ', '-')}.csv"
        view = dgm.simulate(csv=file, jobs=os.cpu_count() or 1, **arguments)
        print(f"## {title}\n")
        print("\n".join(table([row for row in view.standings if row.family == MEAN])), "\n")
        if len(view.policies) == 2:
            print(
                "\n".join(table([row for row in view.standings if row.policy == "lineage"], name="family")),
                "\n",
            )


def table(rows: list[Standing], name: str = "policy") -> Iterator[str]:
    """Return a Markdown table, the highest final score first."""
    yield f"| {' | '.join((name, *COLUMNS[1:]))} |"
    yield "|---|" + "---:|" * (len(COLUMNS) - 1)
    for row in sorted(rows, key=lambda row: -row.final):
        cells = (
            getattr(row, name),
            f"{row.final:.3f}",
            f"{row.difference:+.3f} [{row.difference_low:+.3f}, {row.difference_high:+.3f}]",
            f"{row.won:.0%}",
            f"{row.area:.3f}",
            "–" if row.speed is None else f"{row.speed:.2f}×",
            f"{row.regret:.3f}",
            "–" if row.oracle_regret is None else f"{row.oracle_regret:.3f}",
            f"{row.stuck:.1%}",
            f"{row.agents:.0f}",
        )
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
