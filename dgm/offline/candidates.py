"""Candidate repairs of each seen unit, made once and cached by the unit's text."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from dgm.offline import mutations
from dgm.offline.mutations.code import Change, Code, NeighbourNames, Unit, apply, parse

_PER_LINE = 40


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One possible repair."""

    code: Code
    change: Change
    mark: str
    """Eleven hexadecimal digits that identify the candidate in the model's replies."""

    @property
    def unit(self) -> Unit:
        """The unit that the candidate changes."""
        return self.code.unit

    @property
    def line(self) -> int:
        """The line of the file that the candidate is about, counted from 1."""
        return self.code.unit.first + (self.change.at or self.change.start[0]) - 1

    def rows(self) -> tuple[int, int, tuple[str, ...]] | None:
        """Return the first and last base line to replace (last < first inserts) and the new lines."""
        return apply(self.code, self.change)


@lru_cache(maxsize=1024)
def candidates(unit: Unit, around: NeighbourNames) -> tuple[Candidate, ...]:
    """Return all candidates of a unit, in descending order of prior."""
    code = parse(unit, around)
    if code is None:
        return ()
    best: dict[tuple[object, ...], Change] = {}
    for change in mutations.changes(code):
        key = (change.start, change.end, change.text)
        if key not in best or best[key].prior < change.prior:
            best[key] = change
    return tuple(Candidate(code, change, _mark(unit, change)) for change in _most_likely(best.values()))


def _most_likely(changes: Iterable[Change]) -> list[Change]:
    """Keep at most ``_PER_LINE`` changes of each line, those of the highest prior."""
    count: dict[int, int] = {}
    kept: list[Change] = []
    for change in sorted(changes, key=lambda change: -change.prior):
        line = change.at or change.start[0]
        count[line] = count.get(line, 0) + 1
        if count[line] <= _PER_LINE:
            kept.append(change)
    return kept


def _mark(unit: Unit, change: Change) -> str:
    text = f"{unit.path}\0{unit.first}\0{unit.lines[0]}\0{change.start}\0{change.end}\0{change.text}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:11]
