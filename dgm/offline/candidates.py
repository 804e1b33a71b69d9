"""The changes that could be the repair, for each seen unit, made once and kept by the unit's text."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from dgm.offline import mutations
from dgm.offline.mutations.code import Change, Code, Surroundings, Unit, apply, parse

_PER_LINE = 40


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One possible repair."""

    code: Code
    change: Change
    mark: str
    """Eleven hexadecimal digits that name it in what the model says."""

    @property
    def unit(self) -> Unit:
        """Where it is."""
        return self.code.unit

    @property
    def line(self) -> int:
        """The line of the file that it is about."""
        return self.code.unit.first + (self.change.at or self.change.start[0]) - 1

    def rows(self) -> tuple[int, int, tuple[str, ...]] | None:
        """First and last base line that it replaces (last < first inserts) and the new lines."""
        return apply(self.code, self.change)


@lru_cache(maxsize=1024)
def candidates(unit: Unit, around: Surroundings) -> tuple[Candidate, ...]:
    """All candidates of a unit, in the order in which the operators propose them."""
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
    """At most ``_PER_LINE`` changes of each line, those of the highest prior."""
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
