"""Trajectories in a folder: a file for each evaluation, and an index.

Where the agent wrote a file itself, that is it, in its own form; else the file is made of the recorded model calls, in
ATIF, the Agent Trajectory Interchange Format. Only what version 1.4 has is written, so that readers of any later
version take it. Keys and personal names are taken out, as in a pack.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dgm.archive.conversations import Thread
from dgm.archive.events import ModelCalled
from dgm.archive.run import Run, RunIdentity, identity_of
from dgm.domain import ActionId, Agent, Evaluation, Usage
from dgm.errors import UserError
from dgm.exports.conversations import (
    AnsweredCall,
    dump_json,
    evaluation_facts,
    find_calls,
    find_evaluations,
    guard_calls,
    read_arguments,
    read_threads,
)
from dgm.exports.files import new_folder
from dgm.exports.pack import make_scrubber
from dgm.exports.scrub import LocalIdentity, Scrubber
from dgm.messages import Message, Reply, Role
from dgm.meta.trajectories import TRACE, form_of

VERSION = "ATIF-v1.4"
INDEX = "index.jsonl"
TASK_CHARS = 80
"""Characters of a task's id in the name of a file."""
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9._-]+")
_SOURCES = {Role.SYSTEM: "system", Role.USER: "user"}

Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _File:
    """A file of an evaluation; without data it is only a line of the index."""

    writer: str
    """``agent``, ``dgm``, or empty."""
    form: str
    data: bytes = b""
    is_lines: bool = False
    attempt: int | None = None
    """Number of the try within the action, from 1; None: of all tries."""


def write_atif(run: Run, agent: Agent | None, target: Path, identity: LocalIdentity) -> dict[str, int]:
    """Write trajectories in ATIF throughout, made of the recorded calls, as ``write_trajectories`` does."""
    return write_trajectories(run, agent, target, identity, atif=True)


def write_trajectories(
    run: Run, agent: Agent | None, target: Path, identity: LocalIdentity, *, atif: bool = False
) -> dict[str, int]:
    """Write the trajectories of all evaluations of a run, or of one agent's, into a new folder.

    Args:
        run: the run.
        agent: its evaluations; None: those of all agents.
        target: the new folder.
        identity: the facts about this machine that must not be in the files.
        atif: write ATIF throughout, made of the recorded calls, also where the agent wrote a file itself.

    Returns:
        Numbers of evaluations: ``own`` (the agent wrote a file), ``recorded`` (made of the recorded model calls),
        ``missing`` (neither; the index has a line for each).

    Raises:
        UserError: something is there already, it cannot be written, or no evaluation has a verdict.
        ArchiveCorrupt: a trace is missing or damaged.
    """
    with new_folder(target) as draft:
        evaluations = find_evaluations(run, agent)
        if not evaluations:
            subject = "the run" if agent is None else f"agent {agent.id}"
            raise UserError(f"{target}: not written: no evaluation of {subject} has a verdict yet")
        scrubber = make_scrubber(run.folder, identity)
        named = identity_of(run)
        writers: dict[ActionId, str] = {}
        with (draft / INDEX).open("wb") as index:
            for action, evaluation in evaluations:
                files = _made_files(run, action, evaluation) if atif else _files_of(run, action, evaluation)
                for file in files:
                    writers[action] = file.writer
                    name = _file_name(action, evaluation, file, scrubber) if file.data else None
                    if name:
                        (draft / name).write_bytes(scrubber.clean(file.data))
                    row = _index_row(run, named, action, evaluation, file)
                    index.write(scrubber.clean(dump_json({"file": name, **row}) + b"\n"))
    counts = list(writers.values())
    return {"own": counts.count("agent"), "recorded": counts.count("dgm"), "missing": counts.count("")}


def _files_of(run: Run, action: ActionId, evaluation: Evaluation) -> Iterator[_File]:
    """Yield the agent's own files, that of the last try last; else one of the recorded calls."""
    traces = evaluation.cost.traces
    tries = [int(name[len(TRACE) + 1 :]) for name in traces if re.fullmatch(rf"{TRACE}-[0-9]{{1,3}}", name)]
    files = [(traces[f"{TRACE}-{number}"], number) for number in sorted(tries)]
    files += [(traces[TRACE], _count_tries(evaluation))] if TRACE in traces else []
    for digest, number in files:
        data = run.traces.get(digest)
        form = form_of(data)
        yield _File("agent", form.name, data, form.is_lines, number)
    if TRACE not in traces:
        yield from _made_files(run, action, evaluation)


def _made_files(run: Run, action: ActionId, evaluation: Evaluation) -> Iterator[_File]:
    """Yield a trajectory in ATIF that is made of the recorded calls."""
    calls = find_calls(run, action)
    if not calls:
        yield _File("", "")
        return
    with guard_calls(run, action):
        data = dump_json(_build_document(run, action, evaluation, calls), indent=1) + b"\n"
    yield _File("dgm", VERSION, data)


def _build_document(
    run: Run, action: ActionId, evaluation: Evaluation, calls: Mapping[int, AnsweredCall]
) -> Mapping[str, Any]:
    """Return the trajectory of one evaluation's calls.

    Each message is one step. Where there are several conversations (sub-agents), they follow each other, and each step
    has the number of its own in ``extra.thread``.
    """
    events = [call.event for call in calls.values()]
    threads = read_threads(run, calls.values())
    steps = _Steps(calls)
    for number, thread in enumerate(threads, 1):
        steps.add_thread(thread, {"thread": number} if len(threads) > 1 else {})
    identity, total = identity_of(run), _metrics_of(sum((event.usage for event in events), Usage()))
    return {
        "schema_version": VERSION,
        "session_id": f"{identity.run}/action-{action}",
        "agent": {
            "name": f"{identity.run}/agent-{evaluation.agent}",
            "version": run.tree.agents[evaluation.agent].commit,
            "model_name": events[-1].model,
        },
        "extra": evaluation_facts(identity, action, evaluation),
        "steps": steps.steps,
        "final_metrics": {
            **{f"total_{key}": value for key, value in total.items() if key != "extra"},
            "total_steps": len(steps.steps),
        },
    }


class _Steps:
    """The steps of a trajectory: a message that the agent sent, or an answer of its model.

    What a tool answered is the observation of the step that called it.
    """

    def __init__(self, calls: Mapping[int, AnsweredCall]) -> None:
        self.steps: list[Step] = []
        self._calls = calls
        self._by_call_id: dict[str, Step] = {}
        """Id of a tool call → the newest step of the conversation that made it."""

    def add_thread(self, thread: Thread, extra: Mapping[str, object]) -> None:
        self._by_call_id.clear()
        start = len(self.steps)
        begun = next((_iso_time(self._calls[turn.call].at) for turn in thread.turns), "")
        for prompts in thread.prompts:
            if prompts.system:
                self._add("system", prompts.system, {"timestamp": begun}, extra)
        for turn in thread.turns:
            message, call = turn.message, self._calls[turn.call]
            at = _iso_time(call.at)
            if turn.reply is not None:
                self._add_turn(message, {"timestamp": at, **_answer_facts(call.event, turn.reply)}, extra)
            elif message.role is Role.ASSISTANT:
                # The run's model did not produce it, so it has no metrics.
                self._add_turn(message, {"timestamp": at}, {**extra, "from": "request"})
            elif message.role is not Role.TOOL:
                self._add(_SOURCES[message.role], message.text, {"timestamp": at}, extra)
            elif not self._observe(message, start):
                self._add("user", message.text, {"timestamp": at}, extra)

    def _add_turn(self, turn: Message, facts: Mapping[str, object], extra: Mapping[str, object]) -> None:
        step = self._add("agent", turn.text, facts, extra)
        if turn.calls:
            step["tool_calls"] = [
                {
                    "tool_call_id": call.id or f"step-{step['step_id']}-{number}",
                    "function_name": call.name,
                    "arguments": read_arguments(call.arguments),
                }
                for number, call in enumerate(turn.calls, 1)
            ]
            self._by_call_id |= {call.id: step for call in turn.calls if call.id}

    def _add(self, source: str, text: str, facts: Mapping[str, object], extra: Mapping[str, object]) -> Step:
        step: Step = {"step_id": len(self.steps) + 1, "source": source, "message": text, **facts}
        if extra:
            step["extra"] = {**extra, **step.get("extra", {})}
        self.steps.append(step)
        return step

    def _observe(self, message: Message, start: int) -> bool:
        """Add a tool's answer to the step that called it; return whether there is one.

        A named call has one result, also where the agent shortens it later.
        """
        result = {"content": message.text}
        step = self._by_call_id.get(message.call_id)
        if step is not None:
            result["source_call_id"] = message.call_id
            results = step.get("observation", {}).get("results", ())
            if any(other.get("source_call_id") == message.call_id for other in results):
                return True
        else:
            step = next((step for step in reversed(self.steps[start:]) if step["source"] == "agent"), None)
        if step is not None:
            step.setdefault("observation", {"results": []})["results"].append(result)
        return step is not None


def _answer_facts(call: ModelCalled, reply: Reply) -> Mapping[str, object]:
    return {
        "model_name": call.model,
        **({"reasoning_content": reply.reasoning} if reply.reasoning else {}),
        "metrics": _metrics_of(call.usage),
        **({"extra": {"error": reply.error}} if reply.error else {}),
    }


def _metrics_of(usage: Usage) -> Mapping[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.usd,
        **({"extra": {"reasoning_tokens": usage.reasoning_tokens}} if usage.reasoning_tokens else {}),
    }


def _index_row(
    run: Run, identity: RunIdentity, action: ActionId, evaluation: Evaluation, file: _File
) -> Mapping[str, Any]:
    spend = run.tree.spend_of(action)
    return {
        **evaluation_facts(identity, action, evaluation),
        "try": file.attempt,
        "written_by": file.writer,
        "form": file.form,
        "calls": spend.calls,
        "usd": spend.usd,
        "seconds": evaluation.cost.seconds,
    }


def _file_name(action: ActionId, evaluation: Evaluation, file: _File, scrubber: Scrubber) -> str:
    clean = scrubber.clean(evaluation.task.encode("utf-8", "replace")).decode()
    task = _UNNAMEABLE.sub("-", clean)[:TASK_CHARS].strip("-.") or "task"
    attempt = f".try-{file.attempt}" if file.attempt and _count_tries(evaluation) > 1 else ""
    return f"agent-{evaluation.agent}.{task}.action-{action}{attempt}.{'jsonl' if file.is_lines else 'json'}"


def _count_tries(evaluation: Evaluation) -> int:
    return 1 + sum(bool(re.fullmatch(r"log-[0-9]{1,3}", name)) for name in evaluation.cost.traces)


def _iso_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
