"""The tool calls of a streamed chat completion: the assignment of pieces to calls, and the correction of pieces."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dgm.messages import JsonObject
from dgm.wires.gather import MessageFields
from dgm.wires.values import Ids, arguments_text, is_json, mend_text

_OWN = ("index", "id", "function", "custom")


@dataclass(slots=True)
class Call:
    """One call as far as it was read."""

    at: int
    """Its place among the answer's calls, which is the index that is sent."""
    kind: str
    """``function`` or ``custom``: the key that holds its name and its text."""
    given: str = ""
    """The first id from the server."""
    id: str = ""
    """The id that is sent."""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    """Pieces of the arguments."""
    more: MessageFields = field(default_factory=MessageFields)
    """Further fields of the call, such as a thought's signature."""
    inner: MessageFields = field(default_factory=MessageFields)
    """Further fields beside the name."""

    @property
    def arguments(self) -> str:
        """The arguments' text so far."""
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        """Whether the call may be complete: it has a name, and its arguments are JSON, or there are none at all."""
        return bool(self.name) and (
            self.kind == "custom" or not self.arguments.strip() or is_json(self.arguments)
        )

    def entry(self) -> JsonObject:
        """Return the call in the form of a whole answer."""
        text = mend_text(self.arguments)
        said = {"input": text} if self.kind == "custom" else {"arguments": text if text.strip() else "{}"}
        inner = {**self.inner.fields(), "name": self.name, **said}
        return {**self.more.fields(), "id": self.id, "type": self.kind, self.kind: inner}


class Calls:
    """The calls of one choice."""

    def __init__(self, ids: Callable[[], Ids], names: frozenset[str]) -> None:
        """Take the source of new ids, and the names of the tools that were offered."""
        self.calls: list[Call] = []
        self._ids = ids
        self._names = names
        self._slots: dict[int, Call] = {}
        self._given: dict[str, Call] = {}

    def take(self, pieces: object) -> list[JsonObject] | None:
        """Take the ``tool_calls`` of a delta and return them corrected; None if they need no correction."""
        given = [pieces] if isinstance(pieces, dict) else pieces
        if not isinstance(given, list):
            return []
        same = given is pieces
        sent: list[JsonObject] = []
        for piece in given:
            mended = self._take(piece) if isinstance(piece, dict) else None
            same = same and mended is piece
            if mended is not None:
                sent.append(mended)
        return None if same else sent

    def _take(self, piece: JsonObject) -> JsonObject | None:
        """Take one piece and return it corrected; None if it repeats what was sent."""
        kind = "custom" if isinstance(piece.get("custom"), dict) else "function"
        key = "input" if kind == "custom" else "arguments"
        inner = piece.get(kind)
        inner = inner if isinstance(inner, dict) else {}
        index, given, name = piece.get("index"), piece.get("id"), inner.get("name")
        given = given if isinstance(given, str) else ""
        name = name if isinstance(name, str) else ""
        text = inner.get(key)
        text = arguments_text(text) if text is not None else ""
        slot = index if isinstance(index, int) else None
        call = self._find(slot, given, name, text)
        if call is not None and _repeats(call, given, name, text):
            return None
        began = call is None
        if call is None:
            call = Call(len(self.calls), kind, given, self._ids().take(given))
            self.calls.append(call)
        if slot is not None:
            self._slots[slot] = call
        if given:
            self._given[given] = call
        new_name = name if began or not call.name else self._rest_of_name(call, name)
        call.name += new_name
        call.pieces.append(text)
        if len(piece) > 3 or (len(piece) == 3 and "type" not in piece):
            call.more.add(piece, (*_OWN, "type"))
        if len(inner) > 2:
            call.inner.add(inner, ("name", key))
        fits = type(index) is int and index == call.at and (inner.get(key) is None or type(inner[key]) is str)
        fits = fits and (inner is piece.get(kind) or not began) and new_name == name
        fits = fits and (given == call.id and "type" in piece if began else not given)
        if fits:
            return piece
        return _piece(piece, call, began, {**inner, "name": new_name, key: text})

    def _find(self, slot: int | None, given: str, name: str, text: str) -> Call | None:
        """Return the call that a piece continues; None if it begins a new one.

        A known id decides, then the index, then the order. A second name begins a new call if the previous one may be
        complete. Some servers give every call the same index, the same id, or none.
        """
        last = self.calls[-1] if self.calls else None
        call = self._given.get(given)
        if call is not None:
            apart = slot is not None and slot != call.at and slot not in self._slots and bool(name)
            return None if apart or (name and self._is_second(call, given, name, text)) else call
        call = self._slots.get(slot) if slot is not None else last
        if call is None:
            # Without a name it begins nothing: it is the rest of a call whose head had another index.
            return None if given or name else last
        if name and call.name and given and call.given:
            return None
        if given and call.given and not name and slot is None and call.is_whole and call.arguments:
            return None
        return None if name and self._is_second(call, given, name, text) else call

    def _is_second(self, call: Call, given: str, name: str, text: str) -> bool:
        """Return whether a name, if the call has one already, is another call's."""
        if not call.name or _repeats(call, given, name, text):
            return False
        if call.arguments.strip():
            return is_json(call.arguments)
        if name in self._names or call.name == name:
            return call.name != name or bool(call.given and given and call.given != given)
        return call.name in self._names

    def _rest_of_name(self, call: Call, name: str) -> str:
        """Return the addition of a further piece to the name: empty if it only repeats it."""
        if not name or call.name == name or call.name in self._names:
            return ""
        return name if call.name + name in self._names or not self._names else ""


def _repeats(call: Call, given: str, name: str, text: str) -> bool:
    """Return whether a piece repeats a whole call that was sent, as some servers do at the end."""
    same = bool(given) and given == call.given and name == call.name
    return same and bool(text.strip()) and text == call.arguments and is_json(text)


def _piece(piece: JsonObject, call: Call, began: bool, inner: dict[str, Any]) -> JsonObject:
    named = {name: value for name, value in inner.items() if name != "name" or value or began}
    rest = {name: value for name, value in piece.items() if name not in _OWN and name != "type"}
    head = {"id": call.id, "type": call.kind} if began else {}
    return {"index": call.at, **head, call.kind: named, **rest}
