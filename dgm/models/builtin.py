"""Models without a provider: one that proves that a job runs, one that tries an agent, one that a replay needs."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.config import Settings
from dgm.domain import ActionId, Usage
from dgm.errors import Infrastructure
from dgm.messages import Reply, Request, Role, Stop, Tool, ToolCall

SHOWN = 80
"""Characters of a message that an error shows."""
COMMANDS = ("command", "cmd", "script", "commands")
"""Parameters of a tool that runs commands."""
SHELLS = frozenset({"bash", "shell", "terminal", "sh", "exec", "execute", "run"})
"""Words in the names of tools that run commands; other tools, too, have a parameter ``command``."""
FINISHING = frozenset(
    {
        "final_answer",
        "submit",
        "finish",
        "done",
        "complete",
        "attempt_completion",
        "task_complete",
        "complete_task",
    }
)
"""Tools by which an agent is told that its work is done."""
LOOK = "ls -a"
_WORDS = re.compile(r"[A-Z]?[a-z]+")
_ENDING = re.compile(r"\becho ([A-Z][A-Z_]{9,})\b")
"""A line of output that ends an agent's work, as its prompt names it."""
_LEAST: Mapping[str, object] = {"boolean": False, "integer": 1, "number": 1, "object": {}}
"""The least value of a parameter, by its type."""


@dataclass(frozen=True, slots=True)
class ModelContext:
    """The inputs of a model, built-in or a plug-in (``dgm.plugins`` says how to ask for them)."""

    name: str
    """Name of the model, as users type it; its usage is priced under this name."""
    settings: Settings
    """All settings of the run."""


class _Local:
    """A model on this machine that is always there."""

    def __init__(self, name: str) -> None:
        """Set the full name of the model that it stands for."""
        self.name = name

    async def check(self) -> None:
        """Succeed always."""

    async def close(self) -> None:
        """Do nothing: there are no connections."""


class DryRun(_Local):
    """A model that answers every request with DONE, at no cost: a child proves that it starts and ends a job."""

    def __init__(self, name: str = "dry-run") -> None:
        super().__init__(name)

    async def reply(self, request: Request) -> Reply:  # noqa: ARG002  (whatever is asked)
        """Return the reply DONE."""
        return Reply("DONE", usage=Usage(calls=1))


class RecordedModel(_Local):
    """The model of a replay. It is asked only for replies that the recording lacks, and never gives one."""

    def __init__(
        self, name: str = "recorded", unanswered: dict[ActionId, tuple[int, str]] | None = None
    ) -> None:
        """Take the table of actions → number of their first call without a reply, and why; it is filled in."""
        super().__init__(name)
        self._unanswered = {} if unanswered is None else unanswered

    async def reply(self, request: Request) -> Reply:
        """Raise an error, so that the agent's behaviour without an answer is never graded.

        Raises:
            Infrastructure: always; the message shows the request.
        """
        messages = request.messages  # none, if the request is in a provider's own form
        last = f" (last message of {len(messages)}: {messages[-1].text[:SHOWN]!r})" if messages else ""
        raise Infrastructure(
            f"the recording has no reply to this call{last}; "
            "replay with the agent, tasks and settings that were recorded"
        )

    def note_unanswered(self, action: ActionId, call: int, why: str) -> None:
        """Note that an action's call has no recorded reply."""
        self._unanswered.setdefault(action, (call, why))


class ScriptedTalk(_Local):
    """A model for trying an agent: it looks around once, then finishes, by the tools that the agent offers; at no cost.

    Its answer depends on the tools of the request and the number of its own turns alone.
    """

    def __init__(self, name: str = "scripted") -> None:
        super().__init__(name)

    async def reply(self, request: Request) -> Reply:
        """Return a command that lists the folder, then the end of the work in the agent's own form, else DONE."""
        turn = sum(message.role is Role.ASSISTANT for message in request.messages)
        call = finishing_call(request) if turn else command_call(request.tools, LOOK)
        if not turn and any(tool.name == "exec" and "input" in _properties(tool) for tool in request.tools):
            # Codex runs a script, which calls its other tools.
            call = "exec", {"input": f"text(await tools.exec_command({{cmd: {json.dumps(LOOK)}}}))"}
        if call is None:
            return Reply("DONE", usage=Usage(calls=1))
        name, arguments = call
        tool_call = ToolCall(f"call_{turn}", name, json.dumps(arguments))
        return Reply("", (tool_call,), Stop.TOOL_CALLS, Usage(calls=1))


_Call = tuple[str, Mapping[str, object]]


def finishing_call(request: Request) -> _Call | None:
    """Return name and arguments of the tool that tells the agent that its work is done; None if there is none."""
    for tool in request.tools:
        if tool.name.lower() in FINISHING:
            return tool.name, _required(tool, "DONE")
    texts = (message.text for message in request.messages if message.role is not Role.ASSISTANT)
    line = next((match[0] for text in texts if (match := _ENDING.search(text))), "")
    return command_call(request.tools, line) if line else None


def command_call(tools: Sequence[Tool], command: str) -> _Call | None:
    """Return name and arguments of the tool that runs a command, a shell rather than others; None if there is none."""
    for tool in sorted(tools, key=lambda tool: SHELLS.isdisjoint(map(str.lower, _WORDS.findall(tool.name)))):
        known = _properties(tool)
        if parameter := next((name for name in COMMANDS if name in known), ""):
            return tool.name, {**_required(tool, ""), parameter: _filled(known[parameter], command)}
    return None


def _properties(tool: Tool) -> Mapping[str, Mapping[str, Any]]:
    properties = tool.parameters.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _required(tool: Tool, text: str) -> Mapping[str, object]:
    known = _properties(tool)
    return {
        name: _filled(known[name], text) for name in tool.parameters.get("required") or () if name in known
    }


def _filled(kind: Mapping[str, Any], text: str) -> object:
    """Return a value for a parameter: the text, or the least that its type takes."""
    name = kind.get("type") if isinstance(kind, Mapping) else None
    if name == "array":
        return [text] if text else []
    return _LEAST.get(str(name), text)
