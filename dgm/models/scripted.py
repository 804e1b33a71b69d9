"""A model that gives the replies of a file, so that users can test their agents without a provider."""

import asyncio
import json
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dgm.domain import Usage
from dgm.errors import UserError
from dgm.messages import Message, Reply, Request, RequestRefused, Role, Stop, ToolCall

SCRIPTED = "scripted:"
"""Beginning of the model's name; the path of its file follows."""
FUNCTION = "reply"


class ScriptedModel:
    """A model whose n-th reply in a conversation is the n-th of a list, or what a function returns.

    A file ``*.py`` defines ``reply(messages, tools)``: it gets the conversation as dictionaries (``role``, ``text``,
    ``calls``) and the names of the tools. Any other file is a JSON list. A reply is a text, or an object with ``text``
    and ``calls``, a list of objects with ``name`` and ``arguments``.

    Args:
        name: ``scripted:FILE``.

    Raises:
        UserError: the file cannot be read, or holds something else.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        if name == SCRIPTED:
            raise UserError(f"model '{name}': expected a file after it, such as {SCRIPTED}replies.json")
        self._path = Path(name.removeprefix(SCRIPTED)).expanduser()
        self._script: Sequence[Any] | Callable[..., Any]
        try:
            if self._path.suffix == ".py":
                self._script = runpy.run_path(str(self._path))[FUNCTION]
            else:
                self._script = json.loads(self._path.read_text("utf-8"))
        except KeyError as error:
            raise UserError(f"{self._path}: defines no {FUNCTION}(messages, tools)") from error
        except OSError as error:
            raise UserError(f"{self._path}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise UserError(f"{self._path}: is not JSON: {error}") from error
        except Exception as error:
            raise UserError(f"{self._path}: cannot be run: {type(error).__name__}: {error}") from error
        if isinstance(self._script, list):
            for number, item in enumerate(self._script, 1):
                self._read(item, number)
        elif not callable(self._script):
            raise UserError(f"{self._path}: expected a list of replies")

    async def reply(self, request: Request) -> Reply:
        """Return the reply whose number follows from the model's turns in the request.

        Raises:
            RequestRefused: the list has no more replies, or the function raised an error; the message says which.
        """
        turn = sum(message.role is Role.ASSISTANT for message in request.messages) + 1
        if not callable(self._script):
            if turn > len(self._script):
                count = len(self._script)
                raise RequestRefused("script_ended", f"{self._path} has {count} replies, this is call {turn}")
            return self._read(self._script[turn - 1], turn)
        talk, tools = [_plain(message) for message in request.messages], [tool.name for tool in request.tools]
        try:
            return self._read(await asyncio.to_thread(self._script, talk, tools), turn)
        except Exception as error:
            raise RequestRefused("script_failed", f"{self._path}: {type(error).__name__}: {error}") from error

    async def check(self) -> None:
        """Do nothing: the file was read when the model was opened."""

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _read(self, item: object, number: int) -> Reply:
        item = {"text": item} if isinstance(item, str) else item
        form = 'a text, or {"text": …, "calls": [{"name": …, "arguments": {…}}]}'
        if not isinstance(item, dict) or not item or item.keys() - {"text", "calls"}:
            raise UserError(f"{self._path}: reply {number}: expected {form}")
        try:
            calls = tuple(
                ToolCall(f"call_{number}_{index}", call["name"], json.dumps(call.get("arguments", {})))
                for index, call in enumerate(item.get("calls", ()), 1)
            )
        except (TypeError, LookupError, AttributeError, ValueError) as error:
            raise UserError(f"{self._path}: reply {number}: expected {form}") from error
        return Reply(item.get("text", ""), calls, Stop.TOOL_CALLS if calls else Stop.END, Usage(1))


def _plain(message: Message) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.calls]
    return {"role": str(message.role), "text": message.text, "calls": calls}
