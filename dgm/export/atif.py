"""Recorded model calls as a trajectory in ATIF, the Agent Trajectory Interchange Format.

Only what version 1.4 of the format has is written, so that readers of any later version take it. A step is a message
that the agent sent, or an answer of its model; what a tool answered is the observation of the step that called it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dgm.archive.events import ModelCalled
from dgm.archive.journal import CallReader
from dgm.bounded_reading import parse_json
from dgm.conversations import Thread, collect_threads
from dgm.domain import Usage
from dgm.messages import Message, Reply, Role

VERSION = "ATIF-v1.4"
_SOURCES = {Role.SYSTEM: "system", Role.USER: "user"}

Step = dict[str, Any]


@dataclass(slots=True)
class _Steps:
    """Steps so far."""

    done: list[Step] = field(default_factory=list)
    calling: dict[str, Step] = field(default_factory=dict)
    """Id of a tool call → the newest step of the conversation that made it."""

    def add_thread(
        self, thread: Thread, calls: Mapping[int, tuple[str, ModelCalled]], extra: Mapping[str, object]
    ) -> None:
        """Add a conversation.

        Args:
            thread: the conversation.
            calls: number → time and event.
            extra: further facts of each step.
        """
        self.calling.clear()
        first = len(self.done)
        begun = next((calls[turn.call][0] for turn in thread.turns), "")
        for prompts in thread.prompts:
            if prompts.system:
                self._add("system", prompts.system, {"timestamp": begun}, extra)
        for turn in thread.turns:
            message = turn.message
            at, call = calls[turn.call]
            if turn.reply is not None:
                self._add_turn(message, {"timestamp": at, **_answer_facts(call, turn.reply)}, extra)
            elif message.role is Role.ASSISTANT:
                # The run's model never said it, so it has no metrics.
                self._add_turn(message, {"timestamp": at}, {**extra, "from": "request"})
            elif message.role is Role.TOOL:
                self._observe(message, at, first, extra)
            else:
                self._add(_SOURCES[message.role], message.text, {"timestamp": at}, extra)

    def _add_turn(self, turn: Message, more: Mapping[str, object], extra: Mapping[str, object]) -> None:
        step = self._add("agent", turn.text, more, extra)
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

    def _add(self, source: str, text: str, more: Mapping[str, object], extra: Mapping[str, object]) -> Step:
        step: Step = {"step_id": len(self.done) + 1, "source": source, "message": text, **more}
        if extra:
            step["extra"] = {**extra, **step.get("extra", {})}
        self.done.append(step)
        return step

    def _observe(self, message: Message, at: str, first: int, extra: Mapping[str, object]) -> None:
        """Add what a tool answered: a named call has one result, also where the agent shortens it later."""
        result = {"content": message.text}
        step = self.calling.get(message.call_id)
        if step is not None:
            result["source_call_id"] = message.call_id
            if any(each.get("source_call_id") == message.call_id for each in _results_of(step)):
                return
        else:
            mine = reversed(self.done[first:])
            step = next((each for each in mine if each["source"] == "agent"), None)
        if step is None:
            self._add("user", message.text, {"timestamp": at}, extra)
            return
        step.setdefault("observation", {"results": []})["results"].append(result)


def _answer_facts(call: ModelCalled, reply: Reply) -> dict[str, object]:
    facts: dict[str, object] = {"model_name": call.model}
    if reply.reasoning:
        facts["reasoning_content"] = reply.reasoning
    facts["metrics"] = _metrics_of(call.usage)
    if reply.error:
        facts["extra"] = {"error": reply.error}
    return facts


def _results_of(step: Step) -> Sequence[Mapping[str, str]]:
    found: Sequence[Mapping[str, str]] = step.get("observation", {}).get("results", ())
    return found


def build_document(
    reader: CallReader, calls: Iterable[tuple[float, ModelCalled]], head: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the trajectory of one evaluation's calls; no steps if there are no calls.

    Each message is one step. Where there are several conversations (sub-agents), they follow each other, and each step
    has the number of its own in ``extra.thread``.

    Args:
        reader: of the run's calls.
        calls: the answered calls with their times, in their order.
        head: further keys of the document: ``session_id``, ``agent`` and ``extra``.

    Raises:
        ArchiveCorrupt: a request or a reply is missing or damaged.
    """
    done = {
        call.number: (datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds"), call)
        for seconds, call in calls
    }
    events = [call for _, call in done.values()]
    threads = collect_threads((call.number, *reader.exchange(call)) for call in events)
    steps = _Steps()
    for number, thread in enumerate(threads, 1):
        steps.add_thread(thread, done, {"thread": number} if len(threads) > 1 else {})
    total = sum((call.usage for call in events), Usage())
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
