"""Suites made of suites: merged, filtered, split anew."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dgm.benchmarks.opening import find_suite_folder
from dgm.benchmarks.suite_editing import (
    Composed,
    SplitBy,
    SuitePart,
    change_splits,
    choose_splits,
    compose_suite,
    parse_conditions,
)
from dgm.benchmarks.suites import SuiteBenchmark, suite_names
from dgm.benchmarks.task_facts import list_facts
from dgm.benchmarks.toml_table import suggestion
from dgm.domain import Split
from dgm.errors import UserError
from dgm.paths import asset
from dgm.sessions.suites import NoSandboxEngine


def merge_suites(names: Sequence[str], target: Path) -> tuple[Composed, SuiteBenchmark]:
    """Write the tasks of several suites into one; a task whose id is taken gets its suite's name in front.

    Args:
        names: suites' names or folders, at least two.
        target: a new folder, whose name becomes the suite's.

    Raises:
        UserError: one is no suite's folder, one is named twice, or the target is in use.
    """
    parts = [_open_part(name) for name in names]
    if len(parts) < 2:
        raise UserError("merge: name two suites or more")
    if len({part.folder.resolve() for part in parts}) < len(parts):
        raise UserError("merge: a suite is named twice")
    described = f"tasks of {', '.join(part.suite.name for part in parts)}"
    return _compose(parts, target, described)


def filter_suite(name: str, where: Sequence[str], target: Path) -> tuple[Composed, SuiteBenchmark]:
    """Write the tasks of a suite that meet all conditions into a new one.

    Args:
        name: a suite's name or folder.
        where: as ``parse_conditions`` reads them.
        target: a new folder, whose name becomes the suite's.

    Raises:
        UserError: there is no such suite, a condition is wrong or no task meets them, or the target is in use.
    """
    holds, part, words = parse_conditions(where), _open_part(name), " and ".join(where)
    chosen = [facts.id for facts in list_facts(part.suite) if holds(facts)]
    if not chosen:
        raise UserError(f"{name}: none of {len(part.tasks)} tasks has {words}")
    part = SuitePart(part.folder, part.suite, chosen)
    return _compose([part], target, f"tasks of {part.suite.name} with {words}")


def split_suite(
    name: str, shares: Mapping[Split, float], by: SplitBy, seed: int, target: Path | None = None
) -> SuiteBenchmark:
    """Give a suite's tasks new splits.

    Args:
        name: a suite's name or folder.
        shares: of the tasks that are held out, and of those for promotion; the rest is for search.
        by: what parts them.
        seed: of what is chosen by chance.
        target: a new folder for the suite with the new splits; None: the suite itself is changed.

    Raises:
        UserError: there is no such suite, it cannot be split so, the target is in use, or the suite is dgm's own and
            there is no target.
    """
    part = _open_part(name)
    chosen = choose_splits(
        list_facts(part.suite), shares.get(Split.HOLDOUT, 0.0), shares.get(Split.PROMOTION, 0.0), by, seed
    )
    if target is None and part.folder.resolve().is_relative_to(asset("benchmarks").resolve()):
        raise UserError(f"{name}: is dgm's own suite, which stays as it is; write the new one with --out DIR")
    if target:
        _compose([part], target, part.suite.description)
    change_splits(target or part.folder, chosen)
    return SuiteBenchmark(target or part.folder, NoSandboxEngine())


def _compose(parts: Sequence[SuitePart], target: Path, description: str) -> tuple[Composed, SuiteBenchmark]:
    name = re.sub(r"[^\w.-]", "-", target.resolve().name)
    done = compose_suite(parts, target, name, description)
    return done, SuiteBenchmark(target, NoSandboxEngine())


def _open_part(name: str) -> SuitePart:
    folder = find_suite_folder(name)
    if folder is None:
        hint = suggestion(name, suite_names())
        raise UserError(f"{name}: no suite's folder (one with a suite.toml), and no shipped suite{hint}")
    suite = SuiteBenchmark(folder, NoSandboxEngine())
    tasks = [task.id for split in Split for task in suite.tasks(split)]
    return SuitePart(folder, suite, sorted(tasks))
