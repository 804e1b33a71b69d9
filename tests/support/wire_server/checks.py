"""Small checks of JSON that both vendors' wires need, each refusing in the vendor's tone."""

from collections.abc import Mapping
from typing import Any

from tests.support.wire_server.errors import Refused


def record(value: Any, place: str) -> Mapping[str, Any]:
    """An object, or a refusal."""
    if not isinstance(value, dict):
        raise Refused(400, f"Invalid type for '{place}': expected an object.", "invalid_type", place)
    return value


def listed(value: Any, place: str) -> list[Any]:
    """A list, or a refusal."""
    if not isinstance(value, list):
        raise Refused(400, f"Invalid type for '{place}': expected an array.", "invalid_type", place)
    return value


def text(value: Any, place: str) -> str:
    """A text, or a refusal."""
    if not isinstance(value, str):
        raise Refused(400, f"Invalid type for '{place}': expected a string.", "invalid_type", place)
    return value


def whole(value: Any, place: str, least: int = 1) -> int:
    """A whole number of at least ``least``, or a refusal."""
    if type(value) is not int or value < least:
        raise Refused(
            400, f"Invalid '{place}': integer below minimum value {least}.", "integer_below_min_value", place
        )
    return value


def number(value: Any, place: str, most: float) -> float | None:
    """A number from 0 to ``most`` or nothing, or a refusal."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise Refused(
            400, f"Invalid '{place}': must be a number from 0 to {most:g}.", "decimal_out_of_range", place
        )
    return float(value)


def only(data: Mapping[str, Any], known: frozenset[str]) -> None:
    """Refuses a parameter that the endpoint does not have."""
    for key in data:
        if key not in known:
            raise Refused(400, f"Unknown parameter: '{key}'.", "unknown_parameter", key)
