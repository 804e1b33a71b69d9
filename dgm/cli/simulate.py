"""The tables and the progress of ``dgm simulate``."""

import os
import sys
from collections.abc import Sequence
from functools import partial, update_wrapper

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from dgm.api.simulating import Simulation
from dgm.api.simulating import simulate as simulate_policies
from dgm.cli.app import derive
from dgm.cli.output import make_console
from dgm.simulation.measures import MEAN, Standing

WIDTH = 130
"""Columns of tables if the output is no terminal."""
FEW = 10
"""Below so many worlds a bootstrap's interval is clearly too narrow."""
COLUMNS = ("policy", "final", "difference [95 %]", "won", "area", "speed", "to oracle", "stuck")
LEGEND = (
    "final: true score of the recommended agent; difference: to {reference}, paired; won: searches that end higher, "
    "ties half; area: mean score over the budget; speed: {reference}'s evaluations / this policy's for the same score; "
    "to oracle: to a policy that knows the truth; stuck: searches that recommend the seed although they made better "
    "agents."
)


def show(view: Simulation) -> None:
    """Print the table of the mean of families, and one of the final scores in each family."""
    out = make_console()
    if not sys.stdout.isatty():
        out.width = WIDTH
    workers = "" if view.workers is None else f", {view.workers} workers"
    overall = view.standings[-1].family
    count = "1 world" if len(view.worlds) == 1 else f"{len(view.worlds)} worlds"
    rows = sorted((s for s in view.standings if s.family == overall), key=lambda s: (-s.final, s.policy))
    title = f"{overall}: {count} each, budget {view.budget}, expansion cost {view.expansion_cost:g}{workers}"
    has_oracle = any(standing.oracle_regret is not None for standing in rows)
    shown = [number for number, name in enumerate(COLUMNS) if has_oracle or name != "to oracle"]
    table = _new_table(title, [COLUMNS[number] for number in shown])
    for standing in rows:
        cells = _cells(standing)
        table.add_row(*(cells[number] for number in shown))
    out.print(table)
    if overall == MEAN:
        final = {(s.policy, s.family): f"{s.final:.3f}" for s in view.standings}
        policies = [standing.policy for standing in rows]
        table = _new_table("final score in each family", ["family", *policies])
        for family in view.families:
            table.add_row(family, *(final[policy, family] for policy in policies))
        out.print(table)
    if cut := [f"{s.policy} {s.cut_short:.1%}" for s in rows if s.cut_short]:
        out.print(f"Warning: infrastructure failures cut searches short: {', '.join(cut)}.", markup=False)
    if len(view.worlds) < FEW and len(rows) > 1:
        out.print(f"Warning: intervals from fewer than {FEW} worlds are too narrow to rely on.")
    out.print(LEGEND.format(reference=view.reference), markup=False)


def _new_table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, box=SIMPLE, title_justify="left", padding=(0, 1, 0, 0))
    for number, name in enumerate(columns):
        table.add_column(Text(name), justify="right" if number else "left", no_wrap=True)
    return table


def _cells(s: Standing) -> tuple[str | Text, ...]:
    interval = "" if s.difference_low is None else f" [{s.difference_low:+.3f}, {s.difference_high:+.3f}]"
    return (
        Text(s.policy),
        f"{s.final:.3f}",
        f"{s.difference:+.3f}{interval}",
        f"{s.won:.0%}",
        f"{s.area:.3f}",
        "–" if s.speed is None else f"{s.speed:.2f}×",
        "–" if s.oracle_regret is None else f"{s.oracle_regret:.3f}",
        f"{s.stuck:.0%}",
    )


simulate = derive(
    update_wrapper(partial(simulate_policies, jobs=os.cpu_count() or 1), simulate_policies),
    show,
    omit=("expansion_cost", "workers", "failures", "jobs"),
    names={"policies": "--policy", "families": "--family"},
)
