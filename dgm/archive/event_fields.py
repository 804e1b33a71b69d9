"""The types of values in the bodies of events, checked where an event is read.

A log may come from a stranger, and its values become arguments of git, names of files, sums and lines on a terminal.
So a commit is hexadecimal digits and nothing else; a number, a name and a time have bounds.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter, ValidationError

from dgm.bounded_reading import parse_json
from dgm.domain import Usage

COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
DIGEST = re.compile(r"[0-9a-f]{64}")
"""Name of a trace."""
MOST = 10**15
"""Bound of counts, sums and ids; sums over a log stay below what 64 bits hold."""

_NAME_CHARS = 10_000


def _check_name(text: str) -> str:
    # Any character: names are neutralised where they are shown. Pydantic's own bounds refuse half surrogate pairs.
    if len(text) > _NAME_CHARS:
        raise ValueError(f"longer than {_NAME_CHARS} characters")
    return text


Count = Annotated[int, Field(strict=True, ge=0, le=MOST)]
Amount = Annotated[float, Field(ge=-MOST, le=MOST, allow_inf_nan=False)]
Tokens = Annotated[int, Field(strict=True, ge=-MOST, le=MOST)]
"""May be negative: a booking may correct an earlier one."""
Time = Annotated[float, Field(ge=0, lt=1e11, allow_inf_nan=False)]
Name = Annotated[str, AfterValidator(_check_name)]
"""Name of a task, model, operator, role, stage or trace: plug-ins choose most of them."""
Commit = Annotated[str, AfterValidator(lambda text: text if COMMIT.fullmatch(text) else "")]
"""Empty if the log holds another text: the other agents of such a run can be looked at, and this one has no source."""
Digest = Annotated[str, StringConstraints(pattern=f"^{DIGEST.pattern}$")]
Counts = tuple[Tokens, Tokens, Tokens, Amount] | tuple[Tokens, Tokens, Tokens, Amount, Tokens, Tokens, Tokens]
"""The fields of a ``Usage``; a log may leave out the details of tokens."""


class UnusableField(ValueError):
    """A value that its key never has; the message names the key and says why."""


def _make_checks(kinds: Mapping[str, Any]) -> Mapping[str, Callable[[object], object]]:
    checks = {keys: TypeAdapter(kind).validate_python for keys, kind in kinds.items()}
    return {key: check for keys, check in checks.items() for key in keys.split()}


_CHECKS = _make_checks(
    {
        "action agent attempt case graded id number status": Count,
        "calls evidence parents shown": list[Count],
        "aim code kernel kind model operator role stage syntax task": Name,
        "probes tasks": list[Name],
        "most usage": Counts,
        "reply request": Digest,
        "control": tuple[Amount, Count, Amount, Count] | None,
        "score seconds": Amount,
        "traces": dict[Name, Digest],
        "until": Time,
    }
)
"""Keys of bodies, and the check of their values; all other values are texts, switches and tables."""

_COMMIT: TypeAdapter[str] = TypeAdapter(Commit)
_COUNTS: TypeAdapter[Counts] = TypeAdapter(Counts)


def parse_body(text: str) -> dict[str, Any]:
    """Return the JSON object of an event's ``body`` column.

    Raises:
        ValueError: it is not JSON, or exceeds a bound.
        UnusableField: it is not an object.
    """
    body = parse_json(text, parse_int=_parse_int, parse_float=_parse_float)
    if not isinstance(body, dict):
        raise UnusableField(f"{type(body).__name__}: the body is no object")
    return body


def read_commit(value: object) -> str:
    """Return a commit, or an empty text in place of a text that is none.

    Raises:
        pydantic.ValidationError: it is no text.
    """
    return _COMMIT.validate_python(value)


def read_usage(amounts: object) -> Usage:
    """Return the usage that a list holds.

    Raises:
        pydantic.ValidationError: it holds something else.
    """
    return Usage(*_COUNTS.validate_python(amounts))


def check_fields(body: Mapping[str, Any]) -> None:
    """Raise for a value that its key never has; unknown keys are ignored.

    Raises:
        UnusableField: names the first such key.
    """
    for key, value in body.items():
        check = _CHECKS.get(key)
        if check is not None:
            try:
                check(value)
            except ValidationError as error:
                raise UnusableField(f"{key!r}: {error.errors(include_url=False)[0]['msg']}") from error


def _parse_int(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is no finite number")
    return value
