"""Recorded model calls as a trajectory in ATIF, the Agent Trajectory Interchange Format.

Only what version 1.4 of the format has is written, so that readers of any later version take it. A step is a message
that the agent sent, or an answer of its model; what a tool answered is the observation of the step that called it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dgm.archive.events import ModelCalled
from dgm.archive.journal import read_new_messages
from dgm.archive.traces import Traces
from dgm.bounded_reading import parse_json
from dgm.domain import Usage
from dgm.messages import Message, Reply, Role, ToolCall

VERSION = "ATIF-v1.4"
_SOURCES = {Role.SYSTEM: "system", Role.USER: "user"}

Step = dict[str, Any]


@dataclass(slots=True)
class _Steps:
    """Steps so far, and what is needed to tell new messages from a history that the agent sends again."""

    done: list[Step] = field(default_factory=list)
    calling: dict[str, Step] = field(default_factory=dict)
    """Id of a tool call → the newest step that made it."""
    said: dict[tuple[str, tuple[ToolCall, ...]], Step] = field(default_factory=dict)
    """Turn of the agent → the newest step with it."""
    sent: set[tuple[Role, str]] = field(default_factory=set)
    """Messages of users and systems."""

    def add_request(self, messages: Sequence[Message], at: str) -> None:
        """Add what a request holds beyond the steps so far."""
        known = [n for n, each in enumerate(messages) if self._is_known(each)]
        repeated = known[-1] + 1 if known else 0
        turn: Step | None = None
        unnamed: Counter[int] = Counter()
        for number, message in enumerate(messages):
            told = (message.role, message.text)
            if message.role is Role.TOOL:
                self._observe(message, at, turn, unnamed)
            elif message.role is Role.ASSISTANT:
                if not self._is_known(message):
                    # The run's model never said it, so it has no metrics.
                    self._add_turn(message, {"timestamp": at, "extra": {"from": "request"}})
                turn = self.said[message.text, message.calls]
            elif number >= repeated or told not in self.sent:
                self._add(_SOURCES[message.role], message.text, {"timestamp": at})
                self.sent.add(told)

    def add_reply(self, call: ModelCalled, reply: Reply, at: str) -> None:
        """Add the answer of a model."""
        more: dict[str, object] = {"timestamp": at, "model_name": call.model}
        if reply.reasoning:
            more["reasoning_content"] = reply.reasoning
        more["metrics"] = _metrics_of(call.usage)
        if reply.error:
            more["extra"] = {"error": reply.error}
        self._add_turn(Message(Role.ASSISTANT, reply.text, reply.calls), more)

    def _is_known(self, message: Message) -> bool:
        return message.role is Role.ASSISTANT and (message.text, message.calls) in self.said

    def _add_turn(self, turn: Message, more: Mapping[str, object]) -> None:
        step = self._add("agent", turn.text, more)
        self.said[turn.text, turn.calls] = step
        if turn.calls:
            step["tool_calls"] = [
                {
                    "tool_call_id": call.id or f"step-{step['step_id']}-{number}",
                    "function_name": call.name,
                    "arguments": _arguments_of(call.arguments),
                }
                for number, call in enumerate(turn.calls, 1)
            ]
            self.calling |= {call.id: step for call in turn.calls if call.id}

    def _add(self, source: str, text: str, more: Mapping[str, object]) -> Step:
        step: Step = {"step_id": len(self.done) + 1, "source": source, "message": text, **more}
        self.done.append(step)
        return step

    def _observe(self, message: Message, at: str, turn: Step | None, unnamed: Counter[int]) -> None:
        """Add what a tool answered, once a call.

        Args:
            message: the answer.
            at: time of the request.
            turn: the agent's turn before it in the request; some servers give their calls the same ids in each turn.
            unnamed: step → its answers in this request, so far, that name no call.
        """
        named, result = message.call_id, {"content": message.text}
        is_of_turn = turn and named in (call["tool_call_id"] for call in turn.get("tool_calls", ()))
        step = turn if is_of_turn else self.calling.get(named)
        if step is not None:
            result["source_call_id"] = named
            known, wanted = sum(each.get("source_call_id") == named for each in _results_of(step)), 1
        else:
            step = turn or next((each for each in reversed(self.done) if each["source"] == "agent"), None)
            if step is None:
                self._add("user", message.text, {"timestamp": at})
                return
            unnamed[step["step_id"]] += 1
            known = sum("source_call_id" not in each for each in _results_of(step))
            wanted = unnamed[step["step_id"]]
        if known < wanted:
            step.setdefault("observation", {"results": []})["results"].append(result)


def _results_of(step: Step) -> Sequence[Mapping[str, str]]:
    found: Sequence[Mapping[str, str]] = step.get("observation", {}).get("results", ())
    return found


def build_document(
    traces: Traces, calls: Iterable[tuple[float, ModelCalled]], head: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the trajectory of one evaluation's calls; no steps if there are no calls.

    A history that an agent sends again with a request is not repeated.

    Args:
        traces: of the run.
        calls: the answered calls with their times, in their order.
        head: further keys of the document: ``session_id``, ``agent`` and ``extra``.

    Raises:
        ArchiveCorrupt, ValueError, LookupError, TypeError: a trace is missing, damaged or of another kind.
    """
    steps, total = _Steps(), Usage()
    for seconds, call in calls:
        at = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
        asked, reply = read_new_messages(traces, call)
        steps.add_request(asked, at)
        steps.add_reply(call, reply, at)
        total += call.usage
    final = {f"total_{key}": value for key, value in _metrics_of(total).items() if key != "extra"}
    return {
        "schema_version": VERSION,
        **head,
        "steps": steps.done,
        "final_metrics": {**final, "total_steps": len(steps.done)},
    }


def _metrics_of(usage: Usage) -> dict[str, Any]:
    more = {"extra": {"reasoning_tokens": usage.reasoning_tokens}} if usage.reasoning_tokens else {}
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.usd,
        **more,
    }


def _arguments_of(text: str) -> Mapping[str, Any]:
    """Return a call's arguments, which the format takes as an object only; others are under ``text``."""
    try:
        given = parse_json(text)
        json.dumps(given, allow_nan=False)
    except ValueError:
        given = None
    return given if isinstance(given, dict) else {"text": text}
