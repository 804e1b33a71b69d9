"""The output items of Responses: their assembly from a stream, and their correct form."""

from collections.abc import Callable, Sequence
from typing import Any

from dgm.messages import JsonObject
from dgm.wires.values import Ids, arguments_text, is_json, mend_text, records, texts

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Types of calls that the agent executes → the field with the model's input."""
OTHER_CALLS = ("local_shell_call", "shell_call", "apply_patch_call", "computer_call")
_PREFIXES = {"message": "msg_", "function_call": "fc_", "custom_tool_call": "ctc_", "reasoning": "rs_"}
_PARTS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text", "summary_text": "text"}
"""Types of parts → the field with their text."""


def call_ids(request: JsonObject) -> Ids:
    """Return the ids of a conversation's calls."""
    items = records(request.get("input"))
    return Ids(item.get("call_id") for item in items if not str(item.get("type")).endswith("_output"))


def part_text(part: object) -> str:
    """Return a part's text."""
    return texts([part], "text", "refusal")


def new_part(kind: str) -> dict[str, Any]:
    """Return an empty part of a message's content."""
    return (
        {"type": "refusal", "refusal": ""}
        if kind == "refusal"
        else {"type": kind, "text": "", "annotations": []}
    )


class Names:
    """A generator of ids for items and calls; the same answer always gets the same ones."""

    def __init__(self, request: JsonObject) -> None:
        """Take the request's body."""
        self._request = request
        self._calls: Ids | None = None
        self._items = len(records(request.get("input")))

    def item_id(self, kind: object) -> str:
        """Return a new id for an item."""
        self._items += 1
        return f"{_PREFIXES.get(str(kind), 'item_')}dgm_{self._items}"

    def call_id(self, given: object) -> str:
        """Return the call id ``given``, or a new one if it is missing or taken."""
        if self._calls is None:
            self._calls = call_ids(self._request)
        return self._calls.take(given)

    def reserve(self, items: Sequence[JsonObject]) -> None:
        """Reserve the calls' own ids, so that no new id equals one."""
        if self._calls is None:
            self._calls = call_ids(self._request)
        self._calls.reserve(item["call_id"] for item in items if isinstance(item.get("call_id"), str))


def mend_item(item: JsonObject, item_id: str, call_id: Callable[[object], str]) -> JsonObject:
    """Return an item in a form that the vendor's client can read; the same one if nothing changed."""
    kind = item.get("type")
    fixed: dict[str, Any] = {}
    if not isinstance(kind, str) or not kind:
        kind = "function_call" if "arguments" in item else "reasoning" if "summary" in item else "message"
        fixed["type"] = kind
    if kind in _PREFIXES and item.get("id") != item_id:
        fixed["id"] = item_id
    if kind in CALLS or kind in OTHER_CALLS:
        named = call_id(item.get("call_id"))
        if named != item.get("call_id"):
            fixed["call_id"] = named
    if kind in CALLS and not isinstance(item.get(CALLS[kind]), str):
        fixed[CALLS[kind]] = (
            arguments_text(item.get(CALLS[kind])) if item.get(CALLS[kind]) is not None else ""
        )
    if kind == "message":
        content = item.get("content")
        if isinstance(content, str):
            fixed["content"] = [{**new_part("output_text"), "text": content}]
        elif not isinstance(content, list):
            fixed["content"] = []
        if not item.get("role"):
            fixed["role"] = "assistant"
    if kind == "reasoning" and not isinstance(item.get("summary"), list):
        fixed["summary"] = []
    return {**item, **fixed} if fixed else item


class Item:
    """One output item of a stream."""

    def __init__(self, at: int, item: JsonObject, given_id: object) -> None:
        """Take its place in the output, its first form with the ids that are sent, and its id from the server."""
        self.at = at
        self.item = item
        self.given_id = given_id
        self.done = False
        self.parts: dict[tuple[str, int], list[str]] = {}
        """Type and index of a part → its pieces; for a call's arguments: the field and 0."""
        self.annotations: dict[int, list[object]] = {}

    @property
    def kind(self) -> str:
        """The item's type."""
        return str(self.item["type"])

    @property
    def is_whole(self) -> bool:
        """Whether the item may be complete, although the stream does not say that it is done."""
        if self.done or self.kind != "function_call":
            return True
        text = str(self.final()["arguments"])
        return not text.strip() or is_json(text)

    def mended(self, entry: JsonObject) -> JsonObject:
        """Return a later form of the item under the ids that were sent first."""
        call_id = str(self.item.get("call_id"))
        return mend_item(entry, str(self.item.get("id") or ""), lambda _: call_id)

    def extend(self, kind: str, index: int, text: str) -> None:
        """Add a piece to a part."""
        pieces = self.parts.get((kind, index))
        if pieces is None:
            self.parts[kind, index] = [text]
        else:
            pieces.append(text)

    def text(self, kind: str, index: int) -> str:
        """Return a part's text."""
        return "".join(self.parts.get((kind, index), ()))

    def final(self) -> JsonObject:
        """Return the item completed with the content of its pieces."""
        item, more = self.item, dict[str, Any]()
        if self.kind in CALLS:
            name = CALLS[self.kind]
            text = mend_text(item.get(name) or self.text(name, 0))
            if self.kind == "function_call" and not text.strip():
                text = "{}"
            more[name] = text
        elif self.kind == "message" and not any(map(part_text, item.get("content") or ())):
            more["content"] = self._content(("output_text", "refusal")) or item.get("content") or []
        elif self.kind == "reasoning":
            if not item.get("summary"):
                more["summary"] = self._content(("summary_text",))
            if not item.get("content") and (content := self._content(("reasoning_text",))):
                more["content"] = content
        if item.get("status") == "in_progress":
            more["status"] = "completed"
        changed = {name: value for name, value in more.items() if item.get(name) != value}
        return {**item, **changed} if changed else item

    def _content(self, kinds: tuple[str, ...]) -> list[JsonObject]:
        parts: list[JsonObject] = []
        for (kind, index), pieces in sorted(self.parts.items(), key=lambda entry: entry[0][1]):
            if kind in kinds:
                part = {"type": kind, _PARTS[kind]: mend_text("".join(pieces))}
                noted = {"annotations": self.annotations.get(index, [])} if kind == "output_text" else {}
                parts.append({**part, **noted})
        return parts
