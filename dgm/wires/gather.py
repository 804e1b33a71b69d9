"""Join the pieces of a streamed message, whatever fields they have."""

from collections.abc import Mapping
from typing import Any

from dgm.messages import JsonObject
from dgm.wires.values import mend_text

_SET = frozenset(("role", "id", "type", "name", "index", "format", "signature", "object", "expires_at"))
"""Fields whose new value replaces the old one."""


class MessageFields:
    """The fields of one message: strings grow, lists grow, records are merged, the rest is replaced."""

    def __init__(self) -> None:
        self._strings: dict[str, list[str]] = {}
        self._others: dict[str, Any] = {}

    def add(self, delta: JsonObject, leave: tuple[str, ...] = ()) -> None:
        """Add a delta's fields except those in ``leave``; null changes nothing."""
        for name, value in delta.items():
            if value is None or name in leave:
                continue
            if type(value) is str and name not in self._others and name not in _SET:
                pieces = self._strings.get(name)
                if pieces is None:
                    self._strings[name] = [value]
                else:
                    pieces.append(value)
            else:
                self._add_other(name, value)

    def text(self, name: str) -> str:
        """Return the value of ``name``, if it is text."""
        return "".join(self._strings.get(name, ()))

    def fields(self) -> dict[str, Any]:
        """Return all added fields."""
        return {
            **{name: mend_text("".join(pieces)) for name, pieces in self._strings.items()},
            **self._others,
        }

    def _add_other(self, name: str, value: Any) -> None:  # noqa: ANN401  (any JSON)
        if name in self._strings and not isinstance(value, list):
            return
        old = self._others.get(name)
        if name in self._strings:
            old = [{"type": "text", "text": "".join(self._strings.pop(name))}]
        if isinstance(old, list) and isinstance(value, str):
            value = [{"type": "text", "text": value}]
        self._others[name] = value if name in _SET or old is None else merge_values(old, value)
        if old is None and isinstance(value, list):
            self._others[name] = _extend_list([], value)


def merge_values(old: Any, new: Any) -> Any:  # noqa: ANN401  (any JSON)
    """Return ``old`` continued by ``new``."""
    if isinstance(old, str) and isinstance(new, str):
        return old + new
    if isinstance(old, list) and isinstance(new, list):
        return _extend_list(old, new)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        both = dict(old)
        for name, value in new.items():
            if value is None:
                continue
            known = both.get(name)
            both[name] = value if known is None or name in _SET else merge_values(known, value)
        return both
    return new


def _extend_list(old: list[Any], new: list[Any]) -> list[Any]:
    """Return a list continued; a record with the last one's index and type, or plain text after text, joins it."""
    extended = list(old)
    for entry in new:
        last = extended[-1] if extended else None
        if isinstance(entry, Mapping) and isinstance(last, Mapping) and _continues(last, entry):
            extended[-1] = merge_values(last, entry)
        else:
            extended.append(entry)
    return extended


def _continues(last: JsonObject, entry: JsonObject) -> bool:
    if last.get("type") != entry.get("type") or not entry.get("type"):
        return False
    if "index" in entry or "index" in last:
        return bool(last.get("index") == entry.get("index"))
    kind = entry["type"]
    if kind in ("text", "thinking"):
        return isinstance(entry.get(kind), str | list) and not entry.get("annotations")
    return isinstance(kind, str) and kind.startswith("reasoning.") and kind != "reasoning.encrypted"
