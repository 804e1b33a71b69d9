"""The output of ``dgm simulate``: progress, tables, JSON, Markdown and curves."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgm.cli.output import emit_json, make_console
from dgm.errors import UserError
from dgm.plugins import find_installed, find_plugin
from dgm.policies.registry import PARENT_RULES, POLICIES
from dgm.simulate.contenders import ORACLE
from dgm.simulate.curves import Curve, Panel, svg
from dgm.simulate.families import FAMILIES, OPERATORS, REPORTED, RESERVED, TUNING
from dgm.simulate.measures import FamilyResult, standings
from dgm.simulate.study import Cell, Study
from dgm.simulate.tables import LEGEND, Table, caution, family_tables, markdown, tables, warning
from dgm.simulate.trial import SHARES, Result, Trial

if TYPE_CHECKING:
    from rich.table import Table as RichTable

WIDTH = 130
"""Columns of tables if the output is no terminal."""
EVERY_S = 60.0
"""Seconds between lines of progress if there is no terminal."""

Found = Mapping[Trial, Result]


def show_list(as_json: bool) -> None:
    """Print the families of worlds and the policies, a line each."""
    groups = {"reported": REPORTED, "reserved": RESERVED, "tuning": TUNING, "choosing": (OPERATORS,)}
    families = [
        {"name": name, "group": group, "about": FAMILIES[name].about}
        for group, names in groups.items()
        for name in names
    ]
    names = dict.fromkeys((*POLICIES, ORACLE, *sorted(find_installed("policies"))))
    policies = [{"name": name, "about": _describe_policy(name)} for name in names]
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


def show_results(study: Study, found: Found, reference: str, as_json: bool) -> None:
    """Print the results of the study."""
    by_cell = {cell: standings(study, cell, found, reference) for cell in study.cells}
    if as_json:
        emit_json(_study_document(study, by_cell, reference))
        return
    out = make_console()
    if not sys.stdout.isatty():
        out.width = WIDTH
    for cell, rows in by_cell.items():
        out.print(f"[bold]{cell.title}[/bold]")
        for table in tables(rows):
            out.print(_make_rich_table(table))
        if warned := warning(rows):
            out.print(warned)
    if cautious := caution(chain(*by_cell.values())):
        out.print(cautious)
    out.print(LEGEND.format(reference=reference))


def write_files(
    study: Study, found: Found, reference: str, curves: Path | None, document: Path | None
) -> None:
    """Write the requested files: the anytime curves and the tables.

    Raises:
        UserError: a file cannot be written.
    """
    if curves is None and document is None:
        return
    by_cell = {cell: standings(study, cell, found, reference) for cell in study.cells}
    if curves is not None:
        _write_file(
            curves, svg("Anytime curves of policies in simulated worlds", _make_panels(study, by_cell))
        )
    if document is not None:
        _write_file(document, _markdown_text(study, by_cell, found, reference))


@contextmanager
def show_progress() -> Iterator[Callable[[int, int], None]]:
    """Show the number of finished trials and the remaining time: a bar on a terminal, else a line a minute."""
    if sys.stderr.isatty():
        with _show_bar() as say:
            yield say
        return
    began = said = time.monotonic()

    def line(done: int, of: int) -> None:
        nonlocal said
        now = time.monotonic()
        if done and now - said >= EVERY_S:
            said = now
            left = (now - began) / done * (of - done) / 60
            sys.stderr.write(f"{done} of {of} trials, about {left:.0f} min left\n")
            sys.stderr.flush()

    yield line


@contextmanager
def _show_bar() -> Iterator[Callable[[int, int], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Trials differ in length, and take turns over families and policies.
    with Progress(
        *columns, console=make_console(stderr=True), transient=True, speed_estimate_period=1800.0
    ) as shown:
        task = shown.add_task("trials", total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)


def _study_document(
    study: Study, by_cell: Mapping[Cell, Sequence[FamilyResult]], reference: str
) -> Mapping[str, Any]:
    return {
        "schema": 1,
        "reference": reference,
        "policies": list(study.policies),
        "families": list(study.families),
        "seeds": list(study.seeds),
        "cells": [
            {
                **asdict(cell),
                "checkpoints": [share * cell.budget for share in SHARES],
                "standings": [asdict(standing) for standing in rows],
            }
            for cell, rows in by_cell.items()
        ],
    }


def _markdown_text(
    study: Study, by_cell: Mapping[Cell, Sequence[FamilyResult]], found: Found, reference: str
) -> str:
    hours = sum(result.processor_s for result in found.values()) / 3600
    took = f"{hours:.1f} hours" if hours > 0.1 else f"{60 * hours:.1f} minutes"
    parts = [
        f"Made with `{_command_text(study, reference)}`: {len(found):,} trials, {took} of processor time.",
        LEGEND.format(reference=f"`{reference}`"),
    ]
    for cell, rows in by_cell.items():
        parts += [f"### {cell.title[0].upper()}{cell.title[1:]}", *map(markdown, tables(rows))]
        if warned := warning(rows):
            parts.append(warned)
        if len(study.families) > 1:
            parts += map(markdown, family_tables(rows))
    if cautious := caution(chain(*by_cell.values())):
        parts.append(cautious)
    return "\n\n".join(parts) + "\n"


def _command_text(study: Study, reference: str) -> str:
    """Return the command that repeats the study."""
    words = ["dgm simulate"]
    everybody = set(study.policies) == {*POLICIES, ORACLE}
    words += [f"--policy {policy}" for policy in study.policies if not everybody]
    groups = {REPORTED: "reported", RESERVED: "reserved", TUNING: "tuning"}
    named = (groups[study.families],) if study.families in groups else study.families
    words += [f"--family {family}" for family in named]
    words.append(f"--seeds {study.seeds[0]}:{study.seeds[-1] + 1}")
    words += [f"--budget {budget}" for budget in dict.fromkeys(cell.budget for cell in study.cells)]
    words += [
        f"--expansion-cost {cost:g}" for cost in dict.fromkeys(cell.expansion_cost for cell in study.cells)
    ]
    words += [f"--workers {count}" for count in dict.fromkeys(cell.workers for cell in study.cells) if count]
    words += [f"--failures {share:g}" for share in {cell.failures for cell in study.cells} if share]
    return " ".join([*words, f"--reference {reference}"])


def _make_panels(study: Study, by_cell: Mapping[Cell, Sequence[FamilyResult]]) -> list[Panel]:
    """Return the mean of families first, then each family; if there are several cells, only the mean for each."""
    panels: list[Panel] = []
    for cell, rows in by_cell.items():
        families = list(dict.fromkeys(standing.family for standing in rows))[::-1]
        for family in families[:1] if len(study.cells) > 1 else [*families[:1], *families[:0:-1]]:
            best = sorted((s for s in rows if s.family == family), key=lambda s: (-s.final, s.policy))
            curves = tuple(Curve(s.policy, _curve_points(s, cell)) for s in best)
            panels.append(Panel(f"{family}: {cell.title}" if family == families[0] else family, curves))
    return panels


def _curve_points(standing: FamilyResult, cell: Cell) -> tuple[tuple[float, float], ...]:
    later = zip(SHARES, standing.curve, strict=True)
    return ((0.0, standing.root), *((share * cell.budget, score) for share, score in later))


def _describe_policy(policy: str) -> str:
    """Return the first line of the policy's module docstring, or of its parent rule's.

    The parent rule's is used if the module is named after another policy.
    """
    if policy == ORACLE:
        return _first_line(import_module("dgm.simulate.oracle").__doc__)
    if policy not in POLICIES:
        return _describe_plugin(policy)
    module = POLICIES[policy].partition(":")[0]
    if module.rpartition(".")[2] == policy.replace("-", "_"):
        return _first_line(import_module(module).__doc__)
    parent = find_plugin("policies", policy, POLICIES).parent
    return _first_line(find_plugin("parent_rules", parent, PARENT_RULES).__doc__)


def _describe_plugin(policy: str) -> str:
    """Return the first line about an installed policy; one that cannot be loaded must not hide the others."""
    point = find_installed("policies")[policy]
    try:
        find_plugin("policies", policy, POLICIES)
    except UserError as error:
        return _first_line(str(error))
    return _first_line(import_module(point.module).__doc__) or f"a plug-in, {point.value}"


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0].replace("``", "")


def _make_rich_table(table: Table) -> "RichTable":
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    shown = RichTable(title=table.title, box=SIMPLE, title_justify="left", padding=(0, 1, 0, 0))
    for number, name in enumerate(table.header):
        shown.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*row)
    return shown


def _write_file(path: Path, text: str) -> None:
    """Write the whole file or leave the old one; write directly to a path that is no file, such as a pipe."""
    final = path.resolve()
    draft = final.with_name(f".{final.name}.{os.getpid()}.new")
    try:
        if final.exists() and not final.is_file():
            path.write_text(text, encoding="utf-8")
            return
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(final)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
