"""Subsets: the instances to search on and those held out; shipped, the user's own, or drawn.

A subset is a TOML file (``benchmarks/swebench/README.md``).
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from dgm.benchmarks.swebench_instances import Instance
from dgm.benchmarks.toml_table import Table, suggestion
from dgm.domain import Split, TaskId
from dgm.errors import UserError
from dgm.paths import asset

REST = "rest"
"""A word in place of a list: every instance that no other part names."""


@dataclass(frozen=True, slots=True)
class Subset:
    """Instances by split, each in the order of its file."""

    name: str
    source: str
    """Origin of the subset; empty if the file does not say."""
    parts: Mapping[Split, tuple[TaskId, ...]]


def names() -> Sequence[str]:
    """Return the names of the shipped subsets, sorted."""
    return sorted(file.stem for file in asset("benchmarks", "swebench", "subsets").glob("*.toml"))


def everything(instances: Mapping[TaskId, Instance]) -> Subset:
    """Return a subset that searches on every instance and holds out nothing."""
    return Subset("all", "", {Split.SEARCH: tuple(instances)})


def read(name_or_file: str, instances: Mapping[TaskId, Instance]) -> Subset:
    """Read a shipped subset by name, or a file.

    Raises:
        UserError: there is none, or it names an instance that is not among ``instances``; with file, line and a
            suggestion.
    """
    file = asset("benchmarks", "swebench", "subsets", f"{name_or_file}.toml")
    if name_or_file not in names():
        file = Path(name_or_file).expanduser()
        if not file.is_file():
            raise UserError(
                f"benchmarks.swebench.subset = {name_or_file!r}: no shipped subset and no file"
                f"{suggestion(name_or_file, names())}"
            )
    table = Table.load(file)
    name, source = table.take("name", str, file.stem), table.take("source", str, "")
    table.take("description", str, "")
    table.take("data_set", str, "")
    parts: dict[Split, tuple[TaskId, ...]] = {}
    rest: list[Split] = []
    for split in Split:
        if not table.has(split.value):
            continue
        if table.is_text(split.value):
            table.choice(split.value, [REST])
            rest.append(split)
        else:
            parts[split] = _listed(file, table, split, instances, parts)
    table.end()
    if len(rest) > 1:
        raise UserError(f"{file}: both {rest[0]} and {rest[1]} are {REST!r}; name the instances of one")
    named = {task for tasks in parts.values() for task in tasks}
    for split in rest:
        parts[split] = tuple(task for task in instances if task not in named)
    if not parts.get(Split.SEARCH):
        raise UserError(f"{file}: search: missing or empty; there is nothing to search on")
    return Subset(name, source, parts)


def draw(instances: Mapping[TaskId, Instance], search: int, holdout: int, seed: int = 0) -> Subset:
    """Draw parts with the composition of the whole, by repository and (if the data has it) difficulty.

    The same instances, numbers and seed give the same subset, in whatever order the instances come. The holdout part is
    drawn from the instances that the search part leaves.

    Raises:
        UserError: there are fewer instances than requested.
    """
    if search < 1 or holdout < 0 or search + holdout > len(instances):
        raise UserError(
            f"cannot draw {search} instances to search on and {holdout} to hold out from {len(instances)}"
        )
    left = dict(instances)
    drawn: dict[Split, tuple[TaskId, ...]] = {}
    for split, number in ((Split.SEARCH, search), (Split.HOLDOUT, holdout)):
        drawn[split] = _drawn(left, number, f"{seed}/{split}")
        for task in drawn[split]:
            del left[task]
    source = f"drawn from {len(instances)} instances by repository and difficulty, seed {seed}"
    return Subset(f"drawn-{search}-{holdout}-{seed}", source, drawn)


def text(subset: Subset) -> str:
    """Return the subset as the text of its file."""
    lines = [f"name = {json.dumps(subset.name)}", f"source = {json.dumps(subset.source)}"]
    for split, tasks in subset.parts.items():
        lines += ["", f"{split} = [", *(f"    {json.dumps(task)}," for task in tasks), "]"]
    return "\n".join(lines) + "\n"


def _listed(
    file: Path,
    table: Table,
    split: Split,
    instances: Mapping[TaskId, Instance],
    before: Mapping[Split, Sequence[TaskId]],
) -> tuple[TaskId, ...]:
    found = tuple(TaskId(name) for name in table.texts(split.value))
    elsewhere = {task: other for other, tasks in before.items() for task in tasks}
    seen: set[TaskId] = set()
    for task in found:
        if task not in instances:
            raise UserError(f"{_place(file, task)}: unknown instance {task!r}{_hint(task, instances)}")
        if task in seen:
            raise UserError(f"{_place(file, task)}: {task!r} is named twice")
        if task in elsewhere:
            raise UserError(f"{_place(file, task)}: {task!r} is in {elsewhere[task]} and in {split}")
        seen.add(task)
    return found


def _hint(task: str, instances: Mapping[TaskId, Instance]) -> str:
    near = suggestion(task, list(instances))
    return near if "mean" in near else f" (the data set has {len(instances)} others)"


def _place(file: Path, task: str) -> str:
    """Return the file and the last line that names the instance."""
    numbers = [
        n for n, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if f'"{task}"' in line
    ]
    return f"{file}:{numbers[-1]}" if numbers else f"{file}"


def _drawn(instances: Mapping[TaskId, Instance], number: int, seed: str) -> tuple[TaskId, ...]:
    strata: dict[tuple[str, str], list[TaskId]] = defaultdict(list)
    for task in sorted(instances):
        strata[instances[task].repo, instances[task].difficulty].append(task)
    drawn: list[TaskId] = []
    for key, share in _shares({key: len(tasks) for key, tasks in strata.items()}, number, seed).items():
        drawn += Random(f"{seed}/{key[0]}/{key[1]}").sample(strata[key], share)
    return tuple(sorted(drawn))


def _shares(sizes: Mapping[tuple[str, str], int], number: int, seed: str) -> Mapping[tuple[str, str], int]:
    """Distribute ``number`` in proportion to the sizes, by largest remainders; ties are broken at random."""
    total = sum(sizes.values())
    exact = {key: number * size / total for key, size in sorted(sizes.items())} if total else {}
    shares = {key: int(value) for key, value in exact.items()}
    lots = Random(f"{seed}/lots")
    order = sorted(exact, key=lambda key: (shares[key] - exact[key], lots.random()))
    for key in order[: number - sum(shares.values())]:
        shares[key] += 1
    return shares
