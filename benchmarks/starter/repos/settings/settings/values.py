"""Text of a setting as a typed value."""

import re

from .errors import BadValue

_TRUE = {"1", "yes", "true", "on"}
_FALSE = {"0", "no", "false", "off"}
_SIZES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def as_bool(text):
    """Read yes/no, true/false, on/off or 1/0, in any case."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise BadValue(f"not a yes or no: {text!r}")


def as_number(text):
    """Read a whole number or, with a point, a float."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError as error:
        raise BadValue(f"not a number: {text!r}") from error


def as_size(text):
    """Read a number of bytes such as ``512``, ``10k`` or ``2 MB``."""
    found = re.fullmatch(r"(\d+)\s*([kmg]?)b?", text.strip().lower())
    if not found:
        raise BadValue(f"not a size: {text!r}")
    return int(found.group(1)) * _SIZES[found.group(2)]


def as_duration(text):
    """Read a number of seconds such as ``90``, ``1h30m`` or ``2d``."""
    compact = text.replace(" ", "").lower()
    if compact.isdigit():
        return int(compact)
    if not re.fullmatch(r"(\d+[smhd])+", compact):
        raise BadValue(f"not a duration: {text!r}")
    return sum(int(count) * _SECONDS[unit] for count, unit in re.findall(r"(\d+)([smhd])", compact))


def as_list(text):
    """Read a comma-separated list; empty items are dropped."""
    return [item.strip() for item in text.split(",") if item.strip()]
