"""What the tests' provider answers each agent: a function of the request alone, for agents are asked again.

A question that is not the agent's own (dgm tries a model with a call of its own) is answered in the plainest way.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.messages import Reply, Request, Role, Stop, Tool, ToolCall


@dataclass(frozen=True, slots=True)
class Step:
    """One answer: some words, and the calls of tools as names and arguments."""

    text: str
    calls: tuple[tuple[str, Any], ...] = ()
    """Arguments that are a text are given as they are; others become JSON."""


class Planned:
    """Takes the step that follows the assistant's turns so far.

    Args:
        steps: in order; the last one ends the agent's work.
        lone: answers by the name of the one tool that is offered (empty: none is), where each question stands alone.
    """

    def __init__(self, steps: Sequence[Step] = (), lone: Mapping[str, Step] | None = None) -> None:
        self._steps = tuple(steps)
        self._lone = lone or {}

    async def answer(self, request: Request) -> Reply:
        """One reply."""
        at = sum(message.role is Role.ASSISTANT for message in request.messages)
        name = request.tools[0].name if request.tools else ""
        following = self._steps[at : at + 1]
        step = self._lone.get(name) or (following[0] if following else _plain(request.tools))
        if not {called for called, _ in step.calls} <= {tool.name for tool in request.tools}:
            step = _plain(request.tools)
        calls = tuple(
            ToolCall(f"call_{at}_{index}", called, given if isinstance(given, str) else json.dumps(given))
            for index, (called, given) in enumerate(step.calls)
        )
        return Reply(step.text, calls, Stop.TOOL_CALLS if calls else Stop.END)


def _plain(tools: Sequence[Tool]) -> Step:
    """Calls the first tool with the least that its schema wants, or says that all is well."""
    if not tools:
        return Step("OK")
    given = dict.fromkeys(tools[0].parameters.get("required") or (), "ok")
    return Step("", ((tools[0].name, given),))


PATCH = {"type": "update_file", "path": "status.txt", "diff": "@@\n-waiting\n+ready\n"}
EDIT = {"command": "str_replace", "path": "status.txt", "old_str": "waiting", "new_str": "ready"}
STRUCTURED = Planned(
    lone={
        "": Step(json.dumps({"path": "status.txt", "reason": "It holds the word."})),
        "Edit": Step("", (("Edit", {"old": "waiting", "new": "ready"}),)),
    }
)
PLANS: Mapping[str, Planned] = {
    "mini_swe_agent": Planned(
        [
            Step("I look first.", (("bash", {"command": "cat status.txt"}),)),
            Step("Now I change it.", (("bash", {"command": "echo ready > status.txt"}),)),
            Step("", (("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}),)),
        ]
    ),
    "openai_agents": Planned(
        [
            Step(
                "I look first.",
                (("files", {"pattern": "*.txt"}), ("shell", {"commands": ["cat status.txt"]})),
            ),
            Step("", (("note", 'it says "waiting"\nit has to say "ready"'), ("apply_patch", PATCH))),
            Step(json.dumps({"file": "status.txt", "word": "ready"})),
        ]
    ),
    "anthropic_tools": Planned(
        [
            Step("I look first.", (("bash", {"command": "cat status.txt"}),)),
            Step("Now I change it.", (("str_replace_based_edit_tool", EDIT),)),
            Step("It is ready."),
        ]
    ),
    "langchain_openai": STRUCTURED,
    "langchain_anthropic": STRUCTURED,
}
