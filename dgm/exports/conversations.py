"""The evaluations of a run and their conversations, for exports: verdicts, recorded calls, chat messages."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from dgm.archive.conversations import Thread, collect_threads
from dgm.archive.events import ModelCalled, TaskGraded
from dgm.archive.journal import CallReader
from dgm.archive.run import Run, RunIdentity
from dgm.bounded_reading import parse_json, refuse_odd_values
from dgm.domain import ActionId, Agent, Evaluation
from dgm.messages import Message, Reply

_INVISIBLE = re.compile(r"[^ -~\n]")

ChatMessage = dict[str, Any]
"""A message as OpenAI's Chat Completions has it, where the arguments of a tool call are an object."""


def find_evaluations(run: Run, agent: Agent | None) -> Sequence[tuple[ActionId, Evaluation]]:
    """Return the newest verdict of each action, sorted by agent and task; withdrawn verdicts are left out."""
    withdrawn = run.store.withdrawn(run.tree.seq)
    newest = {
        event.action: event.outcome
        for seq, event in ((item.seq, item.event) for item in run.store.read(0, run.tree.seq))
        if isinstance(event, TaskGraded) and seq not in withdrawn
    }
    wanted = [item for item in newest.items() if agent is None or item[1].agent == agent.id]
    return sorted(wanted, key=lambda item: (item[1].agent, item[1].task, item[1].attempt, item[0]))


def evaluation_facts(identity: RunIdentity, action: ActionId, evaluation: Evaluation) -> dict[str, Any]:
    """Return the facts by which exports name an evaluation: not the reason, which may name hidden tests."""
    return {
        **identity.record(),
        "agent": evaluation.agent,
        "task": evaluation.task,
        "attempt": evaluation.attempt + 1,
        "action": action,
        "verdict": evaluation.verdict.value,
        "score": evaluation.score,
    }


class AnsweredCall(NamedTuple):
    """A model call, and when its answer was recorded."""

    at: float
    """Seconds since 1970."""
    event: ModelCalled


def find_calls(run: Run, action: ActionId) -> Mapping[int, AnsweredCall]:
    """Return the answered calls of an action by number, in order."""
    calls = {
        recorded.event.number: AnsweredCall(recorded.at, recorded.event)
        for recorded in run.store.events_of_action(action)
        if isinstance(recorded.event, ModelCalled) and recorded.seq <= run.tree.seq
    }
    return dict(sorted(calls.items()))


def read_threads(run: Run, calls: Iterable[AnsweredCall]) -> Sequence[Thread]:
    """Return the conversations of an action's calls, the main one first.

    Raises:
        ArchiveCorrupt: a call is missing or damaged.
    """
    reader = CallReader(run.store)
    return collect_threads((call.event.number, *reader.exchange(call.event)) for call in calls)


def guard_calls(run: Run, action: ActionId) -> AbstractContextManager[None]:
    """Raise ``ArchiveCorrupt`` for values in an action's recorded calls that dgm does not write."""
    return refuse_odd_values(f"{run.folder}: model calls of action {action}")


def chat_messages(thread: Thread) -> list[ChatMessage]:
    """Return a conversation as chat messages, with the first system prompt; refused calls are left out."""
    system = next((prompts.system for prompts in thread.prompts), "")
    answered = (turn for turn in thread.turns if turn.reply is None or not turn.reply.error)
    turns = [_chat_message(turn.message, turn.reply) for turn in answered]
    return [*([{"role": "system", "content": system}] if system else []), *turns]


def tool_definitions(thread: Thread) -> list[dict[str, Any]]:
    """Return the tools that a conversation offers its model, as Chat Completions has them."""
    tools = {tool.name: tool for prompts in thread.prompts for tool in prompts.tools}
    texts = {name: json.dumps(tool.parameters) for name, tool in tools.items()}
    functions = [
        {"name": name, "description": tool.description, "parameters": read_arguments(texts[name])}
        for name, tool in tools.items()
    ]
    return [{"type": "function", "function": function} for function in functions]


def _chat_message(message: Message, reply: Reply | None) -> ChatMessage:
    body: ChatMessage = {"role": message.role.value, "content": message.text}
    if reply and reply.reasoning:
        body["reasoning_content"] = reply.reasoning
    if message.calls:
        functions = [
            {"name": call.name, "arguments": read_arguments(call.arguments)} for call in message.calls
        ]
        body["tool_calls"] = [
            {"id": call.id, "type": "function", "function": function}
            for call, function in zip(message.calls, functions, strict=True)
        ]
    if message.call_id:
        body["tool_call_id"] = message.call_id
    return body


def read_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a tool call; ``{"text": …}`` for anything but a JSON object that every reader takes."""
    try:
        arguments = parse_json(text, parse_int=_short_int)
        json.dumps(arguments, allow_nan=False)
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"text": text}


def _short_int(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError("more than 64 bits")
    return number


def dump_json(value: object, indent: int | None = None) -> bytes:
    """Return JSON with invisible characters spelled out, and a question mark for half a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    text = text.encode("utf-8", "replace").decode()
    return _INVISIBLE.sub(lambda m: m[0] if m[0].isprintable() else json.dumps(m[0])[1:-1], text).encode()
