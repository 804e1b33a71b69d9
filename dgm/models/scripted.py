"""A model that gives the replies of a script, so that users can test their agents without a provider."""

import asyncio
import hashlib
import json
import runpy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dgm.domain import Usage
from dgm.errors import UserError
from dgm.messages import Message, Reply, Request, RequestRefused, Role, Stop, ToolCall

SCRIPTED = "scripted:"
"""Beginning of the model's name; the path of its file follows."""
FUNCTION = "reply"
Script = (
    Sequence[str | Mapping[str, Any]]
    | Callable[[Sequence[Mapping[str, Any]], Sequence[str]], str | Mapping[str, Any]]
)
"""Replies, or a function of the conversation and the names of the tools that returns one."""
_passed: dict[str, Script] = {}
"""Name → what a program of this process passed in place of a file."""


def lend_script(script: Script) -> str:
    """Keep a list or a function for this process, and return the name of the model that answers by it.

    Raises:
        UserError: the list holds something else than replies.
    """
    if callable(script):
        label = f"{getattr(script, '__qualname__', type(script).__name__)}-{len(_passed) + 1}"
    else:
        digest = hashlib.sha256(json.dumps(list(script), default=str).encode())
        label = f"replies-{digest.hexdigest()[:8]}"
    _passed[SCRIPTED + label] = script if callable(script) else list(script)
    return ScriptedModel(SCRIPTED + label).name


class ScriptedModel:
    """A model whose n-th reply in a conversation is the n-th of a list, or what a function returns.

    A file ``*.py`` defines ``reply(messages, tools)``: it gets the conversation as dictionaries (``role``, ``text``,
    ``calls``) and the names of the tools. Any other file is a JSON list. A reply is a text, or an object with ``text``
    and ``calls``, a list of objects with ``name`` and ``arguments``.

    Args:
        name: ``scripted:FILE``, or one that ``lend_script`` returned.

    Raises:
        UserError: the file cannot be read, or holds something else.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        if name == SCRIPTED:
            raise UserError(f"model '{name}': expected a file after it, such as {SCRIPTED}replies.json")
        self._path = Path(name.removeprefix(SCRIPTED)).expanduser()
        self._script = _passed[name] if name in _passed else _read_script(self._path)
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
        text = item.get("text", "")
        try:
            calls = tuple(
                ToolCall(f"call_{number}_{index}", call["name"], json.dumps(call.get("arguments", {})))
                for index, call in enumerate(item.get("calls", ()), 1)
            )
        except (TypeError, LookupError, AttributeError, ValueError) as error:
            raise UserError(f"{self._path}: reply {number}: expected {form}") from error
        if not all(isinstance(word, str) for word in (text, *(call.name for call in calls))):
            raise UserError(f"{self._path}: reply {number}: expected {form}")
        return Reply(text, calls, Stop.TOOL_CALLS if calls else Stop.END, Usage(1))


def _read_script(path: Path) -> Any:  # noqa: ANN401  (whatever the file holds)
    try:
        if path.suffix == ".py":
            return runpy.run_path(str(path))[FUNCTION]
        return json.loads(path.read_text("utf-8"))
    except KeyError as error:
        raise UserError(f"{path}: defines no {FUNCTION}(messages, tools)") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path}: is not JSON: {error}") from error
    except Exception as error:
        raise UserError(f"{path}: cannot be run: {type(error).__name__}: {error}") from error


def _plain(message: Message) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.calls]
    return {"role": str(message.role), "text": message.text, "calls": calls}
