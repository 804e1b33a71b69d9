"""The functions and constants of a file that were seen to their end; a half-seen one is left out."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from dgm import syntax
from dgm.offline.files import FileView
from dgm.offline.mutations.code import NeighbourNames, Unit

_HEAD = re.compile(r"^(\s*)(?:async +)?(def|class) +(\w+)")
_ASSIGNED = re.compile(r"^\s*(\w+)\s*(?::[^=]+)?=[^=]")
_LONGEST = 400


def units(view: FileView) -> tuple[Unit, ...]:
    """Return all units of a file, by the base text, in the order of their lines."""
    end = (view.total or 10**9) - view.shift if view.total is not None else 10**9
    return _units(view.path, tuple(sorted(view.base.items())), end)


@lru_cache(maxsize=64)
def _units(path: str, numbered: tuple[tuple[int, str], ...], end: int) -> tuple[Unit, ...]:
    return tuple(_find(path, dict(numbered), end))


def _find(path: str, lines: Mapping[int, str], end: int) -> Iterator[Unit]:
    owners: list[tuple[int, str]] = []
    skip = 0
    for number in lines:
        row = lines[number]
        if number <= skip or not row.strip():
            continue
        indent = len(row) - len(row.lstrip())
        owners = [(depth, name) for depth, name in owners if depth < indent]
        owner = owners[-1][1] if owners else ""
        head = _HEAD.match(row)
        if head and head[2] == "class":
            owners.append((indent, head[3]))
        elif head:
            last = _block_end(lines, number, indent, end)
            if last is not None and last - number < _LONGEST:
                yield _unit(path, lines, number, last, (indent, head[3], owner))
                skip = last
        elif indent == 0 and row.startswith(("from ", "import ")):
            last = _statement_end(lines, number)
            if last is not None:
                yield _unit(path, lines, number, last, (indent, "", owner))
                skip = last
        elif indent == 0 or owners:
            assigned = _ASSIGNED.match(row)
            last = _statement_end(lines, number) if assigned else None
            if assigned and last is not None:
                yield _unit(path, lines, number, last, (indent, assigned[1], owner))
                skip = last


def _unit(path: str, lines: Mapping[int, str], first: int, last: int, what: tuple[int, str, str]) -> Unit:
    indent, name, owner = what
    return Unit(path, first, tuple(lines[n] for n in range(first, last + 1)), indent, name, owner)


def _block_end(lines: Mapping[int, str], first: int, indent: int, end: int) -> int | None:
    """Return the last line of a function, or ``None`` if its end was not seen."""
    last, number = first, first + 1
    while True:
        if number > end:
            return last
        row = lines.get(number)
        if row is None:
            return None
        if row.strip():
            depth = len(row) - len(row.lstrip())
            if depth <= indent and not row.lstrip().startswith((")", "]", "}", "#")):
                return last
            last = number
        number += 1


def _statement_end(lines: Mapping[int, str], first: int) -> int | None:
    text = ""
    for number in range(first, first + 60):
        if number not in lines:
            return None
        text += lines[number].strip() + "\n"
        try:
            syntax.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return number
    return None


@lru_cache(maxsize=512)
def neighbour_names(unit: Unit, all_units: tuple[Unit, ...]) -> NeighbourNames:
    """Return the names around a unit, from the seen units of its file."""
    mates = [other for other in all_units if other.owner == unit.owner and unit.owner]
    text = "\n".join(row for other in mates for row in other.lines)
    everything = "\n".join(row for other in all_units for row in other.lines)
    statements = [
        row.strip()
        for other in mates
        if other.first != unit.first
        for row in other.lines
        if re.match(r"\s+self\.\w+(?:\[.{1,20}\])?(?:\.\w+\(.{0,30}\)| [-+|]?= .{1,40})$", row)
    ]
    methods = {other.name for other in mates if other.lines[0].lstrip().startswith(("def ", "async "))}
    functions = {u.name for u in all_units if not u.owner and u.lines[0].startswith(("def ", "async "))}
    return NeighbourNames(
        functions=tuple(sorted(functions)),
        methods=tuple(sorted(methods - {unit.name})),
        attributes=tuple(sorted(set(re.findall(r"\bself\.(\w+)\b(?!\()", text)))),
        exceptions=_exceptions(everything, all_units),
        statements=tuple(dict.fromkeys(statements)),
    )


def _exceptions(text: str, all_units: tuple[Unit, ...]) -> tuple[str, ...]:
    """Return names of exceptions: raised or caught in the seen text, or imported beside these or from ``errors``."""
    used = set(re.findall(r"\b(?:raise|except) +\(?([A-Z]\w+)\b", text))
    for unit in all_units:
        if unit.lines[0].startswith("from "):
            names = set(re.findall(r"\b[A-Z]\w+\b", "\n".join(unit.lines).split("import", 1)[-1]))
            if "errors" in unit.lines[0] or names & used:
                used |= names
    return tuple(sorted(used))
