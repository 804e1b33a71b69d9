"""The content blocks of a streamed message, and the assignment of events to them."""

from collections.abc import Callable
from typing import Any

from dgm.messages import JsonObject
from dgm.wires.gather import merge_values
from dgm.wires.messages_answer import CALL, mend_block
from dgm.wires.values import Ids, arguments_of, is_json, mend_text

GROWING = {"text_delta": ("text", "text"), "thinking_delta": ("thinking", "thinking")}
"""Types of text deltas → the type of their block, and its field and theirs."""
JSON_DELTA = "input_json_delta"


class Block:
    """One block of the content."""

    def __init__(self, at: int, block: JsonObject) -> None:
        """Take its place in the content and its initial form."""
        self.at = at
        self.block: dict[str, Any] = dict(block)
        self.stopped = False
        self._pieces: list[str] = []
        """Pieces of its text, its thinking or its input's JSON."""

    @property
    def kind(self) -> str:
        """The block's type."""
        return str(self.block["type"])

    @property
    def is_whole(self) -> bool:
        """Whether the block may be complete, although the stream does not say that it stopped."""
        text = "".join(self._pieces)
        return self.stopped or "input" not in self.block or not text.strip() or is_json(text)

    def extend(self, delta: JsonObject) -> None:
        """Add a delta."""
        kind = delta.get("type")
        if kind in GROWING:
            self._pieces.append(delta[GROWING[kind][1]])
        elif kind == JSON_DELTA:
            self._pieces.append(delta["partial_json"])
        elif kind == "citations_delta":
            self.block["citations"] = [*(self.block.get("citations") or ()), delta.get("citation")]
        elif kind == "signature_delta":
            self.block["signature"] = delta.get("signature")
        else:
            for name, value in delta.items():
                if name != "type" and value is not None:
                    self.block[name] = merge_values(self.block.get(name), value)

    def final(self) -> JsonObject:
        """Return the block in the form of a whole answer."""
        text = "".join(self._pieces)
        if not text:
            return self.block
        if "input" in self.block:
            return {**self.block, "input": arguments_of(mend_text(text))}
        return {**self.block, self.kind: mend_text(str(self.block.get(self.kind) or "") + text)}


class Blocks:
    """The blocks so far; places are counted anew, regardless of the server's indices."""

    def __init__(self, ids: Callable[[], Ids]) -> None:
        """Take the source of call ids."""
        self.blocks: list[Block] = []
        self._ids = ids
        self._made: Ids | None = None
        self._slots: dict[int, Block] = {}

    @property
    def content(self) -> list[JsonObject]:
        """The message's content."""
        return [block.final() for block in self.blocks]

    def begin(self, given: object, index: object) -> Block:
        """Add a block."""
        if self._made is None:
            self._made = self._ids()
        block = Block(len(self.blocks), mend_block(given if isinstance(given, dict) else {}, self._made))
        self.blocks.append(block)
        if isinstance(index, int):
            self._slots[index] = block
        return block

    def find(self, index: object) -> Block | None:
        """Return the block of an event; without an index the last one."""
        if isinstance(index, int):
            return self._slots.get(index)
        return self.blocks[-1] if self.blocks else None

    def find_for_delta(self, index: object, kind: str) -> Block | None:
        """Return the block of a delta; None if the delta must begin a new one.

        Some proxies number text and calls wrongly; their text would be lost in a block of another type.
        """
        block = self.find(index)
        if kind in GROWING:
            wanted = GROWING[kind][0]
            if block is not None and block.kind == wanted:
                return block
            last = self.blocks[-1] if self.blocks else None
            return last if last is not None and last.kind == wanted and not last.stopped else None
        if kind == JSON_DELTA and (block is None or "input" not in block.block):
            return next((one for one in reversed(self.blocks) if one.kind == CALL), block)
        return block if block is not None or not self.blocks else self.blocks[-1]
