"""The conversation as messages with native tool calls."""

import json

from agent import prompts, shell, tools
from agent.memory import Call

NAME = "tools"
FAULT = "error: the arguments are no JSON object (%s); nothing was done"


def request(kind, history):
    """Return the body of a request: messages and tools."""
    system = prompts.system(kind, NAME, shell.COMMAND_TIMEOUT_S)
    first = "%s\n\n$ %s\n%s" % (history.opening, *history.look)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": first}]
    for turn in history.turns:
        messages.append(turn.message)
        for call, result in zip(turn.calls, turn.results):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result or "(no output)"})
        if turn.note:
            messages.append({"role": "user", "content": turn.note})
    return {"messages": messages, "tools": tools.SCHEMAS}


def parse(message, number):
    """The calls of a reply; arguments that cannot be read are emptied, since a provider may refuse them later."""
    calls = []
    for at, call in enumerate(message.get("tool_calls") or []):
        function = call.setdefault("function", {})
        call["id"] = call.get("id") or "call_%d_%d" % (number, at)
        fault, arguments = "", {}
        try:
            arguments = dict(**json.loads(function.get("arguments") or "{}", strict=False))
        except (TypeError, ValueError) as error:
            fault, function["arguments"] = FAULT % error, "{}"
        calls.append(Call(call["id"], str(function.get("name")), arguments, fault))
    return calls
