"""Puts a streamed chat completion together, into the form that it has when it is not streamed.

By hand rather than with the package's helper: that one wants an index on every piece of a call, drops reasoning, and
takes a stream that was cut off for one that ended.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from typing import Any

from dgm.models.dialect import Broken
from dgm.models.openai_turns import arguments_text, texts

STRINGS = ("content", "refusal", "reasoning_content", "reasoning")
"""Fields of a message that come in pieces."""
GROWING = ("text", "summary")
"""Of a block of ``reasoning_details``: what comes in pieces."""

JsonObject = Mapping[str, Any]


async def assemble(chunks: AsyncIterator[JsonObject]) -> JsonObject:
    """The completion that the chunks make.

    Raises:
        Broken: the stream ended before the model had, or is malformed.
        openai.APIError: an event is an error, or the connection broke before the answer was whole.
    """
    import openai

    assembly = _Assembly()
    try:
        async for chunk in chunks:
            assembly.add(chunk)
    except openai.APIConnectionError:
        # Only the mark of the end is missing then; to ask again would be to pay again.
        if not assembly.whole:
            raise
    return assembly.completion()


class _Assembly:
    def __init__(self) -> None:
        self._strings: dict[str, list[str]] = defaultdict(list)
        self._blocks: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []
        self._slots: dict[int, int] = {}
        self._finish: str | None = None
        self._usage: object = None

    def add(self, chunk: JsonObject) -> None:
        """Takes one chunk; one without choices (usage, keep-alive) is none of the message."""
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return
        choice = choices[0]
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._take(delta)

    @property
    def whole(self) -> bool:
        """Whether nothing can be missing: the model stopped and was counted."""
        return self._finish is not None and isinstance(self._usage, dict)

    def completion(self) -> JsonObject:
        """What was taken, as one completion."""
        if self._finish is None:
            raise Broken("the stream ended without a finish_reason")
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message.update({name: "".join(pieces) for name, pieces in self._strings.items()})
        if self._blocks:
            message["reasoning_details"] = self._blocks
        if self._calls:
            message["tool_calls"] = [_joined(call) for call in self._calls]
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}

    def _take(self, delta: JsonObject) -> None:
        for name in STRINGS:
            piece = delta.get(name)
            if isinstance(piece, list):
                piece = texts(piece, "text")
            if isinstance(piece, str) and piece:
                self._strings[name].append(piece)
        for block in _several(delta, "reasoning_details"):
            self._add_block(block)
        for piece in _several(delta, "tool_calls"):
            self._add_call(piece)
        if isinstance(delta.get("function_call"), dict):
            self._add_call({"index": 0, "function": delta["function_call"]})

    def _add_block(self, block: object) -> None:
        if not isinstance(block, dict):
            raise Broken("a block of reasoning_details is no JSON object")
        last = self._blocks[-1] if self._blocks else {}
        growing = next((name for name in GROWING if isinstance(block.get(name), str)), None)
        same = all(last.get(name) == block.get(name) for name in ("type", "index"))
        if growing is None or not same or not isinstance(last.get(growing), str):
            self._blocks.append(dict(block))
            return
        filled = {name: value for name, value in block.items() if value is not None}
        last.update({**filled, growing: last[growing] + block[growing]})

    def _add_call(self, piece: object) -> None:
        function = piece.get("function") if isinstance(piece, dict) else None
        if not isinstance(piece, dict) or not isinstance(function, dict | None):
            raise Broken("a piece of a tool call is no JSON object")
        function = function or {}
        call = self._call_of(piece, function)
        call["id"] = call["id"] or piece.get("id") or ""
        call["name"] = call["name"] or function.get("name") or ""
        given = function.get("arguments")
        if given is not None:
            call["arguments"].append(given if isinstance(given, str) else arguments_text(given))
        extra = {name: value for name, value in piece.items() if name not in ("index", "id", "function")}
        call["extra"].update({name: value for name, value in extra.items() if value is not None})

    def _call_of(self, piece: JsonObject, function: JsonObject) -> dict[str, Any]:
        """The call that a piece continues, or a new one.

        An index tells, unless the piece starts a call with an id of its own (some servers count every call as 0). Where
        there is none, the id tells; a piece with a name but no known id starts a call; any other continues the last.
        """
        given, index = piece.get("id") or "", piece.get("index")
        at: int | None = None
        if isinstance(index, int):
            at = self._slots.get(index)
            if at is not None and function.get("name") and given and self._calls[at]["id"] not in ("", given):
                at = None
        elif given:
            at = next((n for n, call in enumerate(self._calls) if call["id"] == given), None)
        elif not function.get("name") and self._calls:
            at = len(self._calls) - 1
        if at is None:
            at = len(self._calls)
            self._calls.append({"id": "", "name": "", "arguments": [], "extra": {}})
        if isinstance(index, int):
            self._slots[index] = at
        return self._calls[at]


def _joined(call: JsonObject) -> JsonObject:
    function = {"name": call["name"], "arguments": "".join(call["arguments"])}
    return {**call["extra"], "id": call["id"], "function": function}


def _several(delta: JsonObject, name: str) -> list[object]:
    given = delta.get(name) or []
    if not isinstance(given, list):
        raise Broken(f"{name} of a chunk is no list")
    return given
