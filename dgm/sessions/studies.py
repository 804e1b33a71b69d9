"""Studies of policies in simulated worlds, from what a person names to their record, tables and curves."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from itertools import chain, product
from pathlib import Path
from typing import Any

from dgm.errors import UserError
from dgm.plugins import find_installed, find_plugin
from dgm.policies.registry import PARENT_RULES, POLICIES
from dgm.simulate.contenders import ORACLE, check_policy
from dgm.simulate.curves import Curve, Panel, svg
from dgm.simulate.families import FAMILIES, OPERATORS, REPORTED, RESERVED, TUNING
from dgm.simulate.measures import FamilyResult, standings
from dgm.simulate.study import Cell, Study
from dgm.simulate.tables import LEGEND, caution, family_tables, markdown, tables, warning
from dgm.simulate.trial import SHARES, Result, Trial

MOST_SEEDS = 100_000
BUDGET, COST = 800, 1.0
GROUPS: Mapping[str, tuple[str, ...]] = {"reported": REPORTED, "reserved": RESERVED, "tuning": TUNING}
"""Families of worlds by the name of their group."""


@dataclass(frozen=True, slots=True)
class StudyChoice:
    """Choices for a study; all combinations of their values are tried."""

    families: Sequence[str] = ()
    """Names of families or groups; if empty, the reported ones."""
    seeds: str = "20"
    """Number of seeds, or ``FROM:TO`` without TO."""
    budgets: Sequence[int] = ()
    """In evaluations; if empty, 800."""
    costs: Sequence[float] = ()
    """Evaluations that one expansion takes; if empty, 1."""
    workers: Sequence[int] = ()
    """Steps at once; if empty, as each family is meant to be met."""
    failures: float = 0.0
    """Share of steps that the infrastructure fails, from 0 to below 1."""


def build_study(policies: Sequence[str], chosen: StudyChoice) -> Study:
    """Return the study of these policies.

    Raises:
        UserError: a policy, a family, the seeds or a cell is wrong; names the first.
    """
    families = [name for each in chosen.families or ("reported",) for name in GROUPS.get(each, (each,))]
    for policy in policies:
        check_policy(policy)
    return Study(
        tuple(dict.fromkeys(policies)),
        tuple(dict.fromkeys(families)),
        _parse_seeds(chosen.seeds),
        tuple(
            Cell(budget, cost, workers, chosen.failures)
            for budget, cost, workers in product(
                dict.fromkeys(chosen.budgets or (BUDGET,)),
                dict.fromkeys(chosen.costs or (COST,)),
                dict.fromkeys(chosen.workers or (None,)),
            )
        ),
    )


def all_policies() -> Sequence[str]:
    """Return the built-in policies, and the oracle."""
    return (*POLICIES, ORACLE)


def single_trial(study: Study) -> Trial:
    """Return the only trial of a study.

    Raises:
        UserError: it has several.
    """
    trials = list(study.trials())
    if len(trials) != 1:
        raise UserError(
            f"--record: wants one policy, one family and one seed, such as --policy hgm --family drift "
            f"--seeds 7:8; these are {len(trials)} trials"
        )
    return trials[0]


def list_worlds() -> dict[str, Any]:
    """Return the families of worlds and the policies as JSON, each with a line about it."""
    families = [
        {"name": name, "group": group, "about": FAMILIES[name].about}
        for group, names in {**GROUPS, "choosing": (OPERATORS,)}.items()
        for name in names
    ]
    names = dict.fromkeys((*POLICIES, ORACLE, *sorted(find_installed("policies"))))
    return {
        "families": families,
        "policies": [{"name": name, "about": _describe_policy(name)} for name in names],
    }


@dataclass(frozen=True)
class StudyResults:
    """All results of a study, and the policy that the others are compared with."""

    study: Study
    found: Mapping[Trial, Result]
    reference: str

    @cached_property
    def by_cell(self) -> Mapping[Cell, Sequence[FamilyResult]]:
        """Result of each policy in each family, cell by cell."""
        return {cell: standings(self.study, cell, self.found, self.reference) for cell in self.study.cells}

    def record(self) -> Mapping[str, Any]:
        """Return the document that ``dgm simulate --json`` prints."""
        return _study_document(self.study, self.by_cell, self.reference)

    def curves(self) -> str:
        """Return the anytime curves as SVG."""
        panels = _make_panels(self.study, self.by_cell)
        return svg("Anytime curves of policies in simulated worlds", panels)

    def markdown(self) -> str:
        """Return all tables as Markdown, with the command that repeats the study."""
        return _markdown_text(self.study, self.by_cell, self.found, self.reference)


def write_text(path: Path, text: str) -> None:
    """Write the whole file or leave the old one; write directly to a path that is no file, such as a pipe.

    Raises:
        UserError: it cannot be written.
    """
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


def _parse_seeds(text: str) -> tuple[int, ...]:
    first, _, last = text.rpartition(":")
    try:
        start, end = int(first or 0), int(last)
    except ValueError as error:
        raise UserError(f"--seeds {text}: expected how many, or FROM:TO, for example 1000:1100") from error
    if ":" in text and end <= start:
        wrong = "is empty" if end == start else "runs backwards"
        raise UserError(f"--seeds {text}: the range {wrong}; FROM has to be below TO, as in 1000:1100")
    if not 0 < end - start <= MOST_SEEDS or start < 0:
        raise UserError(f"--seeds {text}: expected 1 to {MOST_SEEDS} seeds, from 0 on")
    return tuple(range(start, end))


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
    study: Study,
    by_cell: Mapping[Cell, Sequence[FamilyResult]],
    found: Mapping[Trial, Result],
    reference: str,
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
