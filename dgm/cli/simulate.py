"""``dgm simulate``: policies in worlds that cost nothing, compared in pairs."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import console, emit_json
from dgm.errors import UserError

if TYPE_CHECKING:
    from dgm.simulate.study import Study
    from dgm.simulate.tables import Table

MOST_SEEDS = 100_000
WIDTH = 130
"""Of tables where the output is no terminal."""


@click.command()
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME[+KEY=VALUE]",
    help="A policy, with settings of its own such as lineage+gate=hgm (default: all that are named, and oracle).",
)
@click.option(
    "--family",
    "families",
    multiple=True,
    metavar="NAME",
    help="A family of worlds, or reported, reserved or tuning (default reported).",
)
@click.option("--seeds", default="20", metavar="N|FROM:TO", help="How many worlds, or which (default 20).")
@click.option("--budget", "budgets", type=int, multiple=True, help="Evaluations (default 800).")
@click.option(
    "--expansion-cost",
    "costs",
    type=float,
    multiple=True,
    help="Evaluations that one expansion takes (default 1).",
)
@click.option(
    "--workers",
    type=int,
    multiple=True,
    help="Steps at once (default: 1, or as the family is meant to be met).",
)
@click.option("--failures", type=float, default=0.0, help="Share of steps that the infrastructure fails.")
@click.option("--reference", default="hgm", metavar="NAME", help="Whom all are compared with (default hgm).")
@click.option(
    "--results",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep results here, and go on from them.",
)
@click.option("--jobs", type=click.IntRange(1, 256), help="Processes (default: as many as there are cores).")
@click.option("--list", "listing", is_flag=True, help="List the families and the policies.")
@as_json
def simulate(
    policies: tuple[str, ...],
    families: tuple[str, ...],
    seeds: str,
    budgets: tuple[int, ...],
    costs: tuple[float, ...],
    workers: tuple[int, ...],
    failures: float,
    reference: str,
    results: Path | None,
    jobs: int | None,
    listing: bool,
    as_json: bool,
) -> None:
    """Try policies in simulated worlds, and compare them in pairs.

    Options that can be given several times are combined with one another, each with each.
    """
    from itertools import product

    from dgm.simulate.contenders import check_policy
    from dgm.simulate.crew import quiet
    from dgm.simulate.results import Results
    from dgm.simulate.study import Cell, Study, carry_out

    if listing:
        _list(as_json)
        return
    quiet()
    cells = [
        Cell(budget, cost, count, failures)
        for budget, cost, count in product(budgets or (800,), costs or (1.0,), workers or (None,))
    ]
    names = tuple(dict.fromkeys((*(policies or _all_policies()), reference)))
    for name in names:
        check_policy(name)
    study = Study(names, _families(families), _seeds(seeds), tuple(cells))
    with Results(results) as kept, _progress(quiet=as_json) as on_trial:
        found = carry_out(study, kept, jobs or os.cpu_count() or 1, on_trial)
    _show(study, found, reference, as_json)


def _list(as_json: bool) -> None:
    from dgm.simulate.families import FAMILIES, REPORTED, RESERVED, TUNING

    groups = {"reported": REPORTED, "reserved": RESERVED, "tuning": TUNING}
    families = [
        {"name": name, "group": group, "about": FAMILIES[name].about}
        for group, names in groups.items()
        for name in names
    ]
    policies = [{"name": name, "about": _about(name)} for name in _all_policies()]
    if as_json:
        emit_json({"families": families, "policies": policies})
        return
    for group in groups:
        sys.stdout.write(f"{group} families of worlds:\n")
        for family in families:
            if family["group"] == group:
                sys.stdout.write(f"  {family['name']:<20} {family['about']}\n")
    sys.stdout.write("policies:\n")
    for policy in policies:
        sys.stdout.write(f"  {policy['name']:<20} {policy['about']}\n")


def _about(policy: str) -> str:
    """The first line of what the policy's module says."""
    from importlib import import_module

    from dgm.policies.registry import POLICIES
    from dgm.simulate.contenders import ORACLE

    module = "dgm.simulate.oracle" if policy == ORACLE else POLICIES[policy].partition(":")[0]
    return (import_module(module).__doc__ or "").partition("\n")[0]


def _all_policies() -> tuple[str, ...]:
    from dgm.policies.registry import POLICIES
    from dgm.simulate.contenders import ORACLE

    return (*POLICIES, ORACLE)


def _families(names: Sequence[str]) -> tuple[str, ...]:
    from dgm.simulate.families import REPORTED, RESERVED, TUNING

    groups = {"reported": REPORTED, "reserved": RESERVED, "tuning": TUNING}
    return tuple(dict.fromkeys(f for name in names or ("reported",) for f in groups.get(name, (name,))))


def _seeds(text: str) -> tuple[int, ...]:
    first, _, last = text.rpartition(":")
    try:
        seeds = range(int(first or 0), int(last))
    except ValueError as error:
        raise UserError(f"--seeds {text}: expected how many, or FROM:TO, for example 1000:1100") from error
    if not 0 < len(seeds) <= MOST_SEEDS or seeds[0] < 0:
        raise UserError(f"--seeds {text}: expected 1 to {MOST_SEEDS} seeds, from 0 on")
    return tuple(seeds)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    began = time.monotonic()

    def say(done: int, of: int) -> None:
        if quiet or not sys.stderr.isatty() or not of:
            return
        elapsed = time.monotonic() - began
        left = f", about {elapsed / done * (of - done):.0f} s left" if done else ""
        sys.stderr.write(f"\r{done} of {of} trials{left}\x1b[K")
        sys.stderr.flush()

    yield say
    if not quiet and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")


def _show(study: "Study", found: Mapping[Any, Any], reference: str, as_json: bool) -> None:
    from dgm.simulate.measures import standings
    from dgm.simulate.tables import LEGEND, tables

    by_cell = {cell: standings(study, cell, found, reference) for cell in study.cells}
    if as_json:
        emit_json(
            {
                "reference": reference,
                "seeds": list(study.seeds),
                "families": list(study.families),
                "cells": [
                    {**asdict(cell), "standings": [asdict(s) for s in rows]} for cell, rows in by_cell.items()
                ],
            }
        )
        return
    out = console()
    if not sys.stdout.isatty():
        out.width = WIDTH
    for cell, rows in by_cell.items():
        out.print(f"[bold]{cell.title}[/bold]")
        for table in tables(rows):
            out.print(_rich(table))
    out.print(LEGEND.format(reference=reference))


def _rich(table: "Table") -> Any:
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    shown = RichTable(title=table.title, box=SIMPLE, title_justify="left", padding=(0, 1, 0, 0))
    for number, name in enumerate(table.header):
        shown.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*row)
    return shown
