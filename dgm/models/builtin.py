"""Models without a provider: one that proves that a job runs, one that tries an agent, one that a replay needs."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.config import Settings
from dgm.domain import Usage
from dgm.errors import Infrastructure
from dgm.messages import Reply, Request, Role, Stop, Tool, ToolCall

SHOWN = 80
"""Characters of a message that an error shows."""
COMMANDS = ("command", "cmd", "script", "commands")
"""Parameters of a tool that runs commands."""
SHELLS = frozenset({"bash", "shell", "terminal", "sh", "exec", "execute", "run"})
"""Words in the names of tools that run commands; other tools, too, have a parameter ``command``."""
FINISHING = (
    *("final_answer", "submit", "finish", "done", "complete"),
    *("attempt_completion", "task_complete", "complete_task"),
)
"""Tools by which an agent is told that its work is done."""
LOOK = "ls -a"
_WORDS = re.compile(r"[A-Z]?[a-z]+")
_SAID = re.compile(r"\becho ([A-Z][A-Z_]{9,})\b")
"""A line of output that ends an agent's work, as its prompt names it."""


@dataclass(frozen=True, slots=True)
class ModelContext:
    """The inputs of a model, built-in or a plug-in (``dgm.factories`` says how to ask for them)."""

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
    """The model behind a gateway whose journal holds the replies of a run; it is asked only for missing ones.

    Such a request ends in ``Infrastructure``, so that the agent's behaviour without an answer is never graded. The
    gateway puts the action and the call's number before the message.
    """

    def __init__(self, name: str = "recorded") -> None:
        super().__init__(name)

    async def reply(self, request: Request) -> Reply:
        """Raise an error: there is no reply.

        Raises:
            Infrastructure: always; the message shows the request.
        """
        # A request in a provider's own form comes without its messages.
        last = (
            f" (last message of {len(request.messages)}: {request.messages[-1].text[:SHOWN]!r})"
            if request.messages
            else ""
        )
        raise Infrastructure(
            f"the recording has no reply to this call{last}; "
            "replay with the agent, tasks and settings that were recorded"
        )


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
        name, given = call
        tool_call = ToolCall(f"call_{turn}", name, json.dumps(given))
        return Reply("", (tool_call,), Stop.TOOL_CALLS, Usage(calls=1))


def finishing_call(request: Request) -> tuple[str, Mapping[str, object]] | None:
    """Return name and arguments of the tool that tells the agent that its work is done; None if there is none."""
    for tool in request.tools:
        if tool.name.lower() in FINISHING:
            return tool.name, {name: _filled(kind, "DONE") for name, kind in _required(tool).items()}
    matches = [
        _SAID.search(message.text) for message in request.messages if message.role is not Role.ASSISTANT
    ]
    line = next((match[0] for match in matches if match), "")
    return command_call(request.tools, line) if line else None


def command_call(tools: Sequence[Tool], command: str) -> tuple[str, Mapping[str, object]] | None:
    """Return name and arguments of the tool that runs a command; None if there is none.

    Among several that take one, the first whose name has a word for a shell is taken, else the first.
    """
    for tool in sorted(tools, key=lambda tool: not _names_shell(tool)):
        known = _properties(tool)
        for parameter in COMMANDS:
            if parameter in known:
                others = {name: _filled(kind, "") for name, kind in _required(tool).items()}
                return tool.name, {**others, parameter: _filled(known[parameter], command)}
    return None


def _names_shell(tool: Tool) -> bool:
    return not SHELLS.isdisjoint(word.lower() for word in _WORDS.findall(tool.name))


def _properties(tool: Tool) -> Mapping[str, Mapping[str, Any]]:
    found = tool.parameters.get("properties")
    return found if isinstance(found, Mapping) else {}


def _required(tool: Tool) -> Mapping[str, Mapping[str, Any]]:
    names = tool.parameters.get("required")
    known = _properties(tool)
    return {name: known[name] for name in names if name in known} if isinstance(names, Sequence) else {}


def _filled(kind: Mapping[str, Any], text: str) -> object:
    """Return a value for a parameter: the text, or the least that its type takes."""
    match kind.get("type") if isinstance(kind, Mapping) else None:
        case "array":
            return [text] if text else []
        case "boolean":
            return False
        case "integer" | "number":
            return 1
        case "object":
            return {}
        case _:
            return text
