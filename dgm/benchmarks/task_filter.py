"""Conditions on tasks as options give them: ``kind=bug,history``, ``tag!=slow``, ``f2p<5``, ``date>=2026-03``."""

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dgm.benchmarks.task_facts import TaskFacts
from dgm.benchmarks.toml_table import suggestion
from dgm.errors import UserError

TEXTS: Mapping[str, Callable[[TaskFacts], Collection[str]]] = {
    "id": lambda facts: [facts.id],
    "kind": lambda facts: [facts.kind],
    "split": lambda facts: [facts.split.value],
    "difficulty": lambda facts: [facts.difficulty],
    "repo": lambda facts: [facts.repo],
    "tag": lambda facts: facts.tags,
    "module": lambda facts: facts.modules,
    "calibrated": lambda facts: [facts.calibrated],
    "license": lambda facts: [facts.provenance.license if facts.provenance else ""],
}
"""Fields that are texts; of several, as tags, one that fits is enough."""
ORDERED: Mapping[str, Callable[[TaskFacts], int | str]] = {
    "date": lambda facts: facts.day,
    "f2p": lambda facts: len(facts.fail_to_pass),
    "p2p": lambda facts: len(facts.pass_to_pass),
    "lines": lambda facts: facts.added + facts.removed,
    "files": lambda facts: len(facts.changes),
}
"""Fields that are whole numbers, or a day."""
_CONDITION = re.compile(r"\s*(\w+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
Condition = Callable[[TaskFacts], bool]


def parse_conditions(texts: Sequence[str]) -> Condition:
    """Return the condition that all of these hold.

    Each is a field, one of ``= != < <= > >=``, and a value; for a text several values with commas between them. A date
    may be a month or a year, and stands for all its days.

    Raises:
        UserError: one is none; the message names it.
    """
    conditions = [_parse(text) for text in texts]
    return lambda facts: all(holds(facts) for holds in conditions)


def _parse(text: str) -> Condition:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise UserError(f"--where {text!r}: expected FIELD=VALUE, such as kind=bug or 'f2p<5'")
    field, sign, value = found.groups()
    if field in TEXTS:
        if sign not in ("=", "!="):
            raise UserError(f"--where {text!r}: {field} is a text; compare it with = or !=")
        read, wanted = TEXTS[field], {part.strip() for part in value.split(",")}
        return lambda facts: bool(wanted & {*read(facts)}) == (sign == "=")
    if field not in ORDERED:
        known = [*TEXTS, *ORDERED]
        raise UserError(
            f"--where {text!r}: unknown field {field!r}{suggestion(field, known)}; one of {', '.join(known)}"
        )
    compare, of = _SIGNS[sign], ORDERED[field]
    if field == "date":
        if not _DATE.fullmatch(value):
            raise UserError(f"--where {text!r}: date is compared with a day such as 2024-01-31")
        return lambda facts: bool(facts.day) and compare(facts.day[: len(value)], value)
    if not re.fullmatch(r"\d{1,9}", value):
        raise UserError(f"--where {text!r}: {field} is compared with a whole number")
    return lambda facts: compare(of(facts), int(value))
