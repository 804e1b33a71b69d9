"""A run as logs of Inspect, written by ``inspect_ai`` itself: a log for each agent, a sample for each evaluation.

A further attempt at a task is a further epoch of its sample. All texts are cleaned, as in a pack.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from dgm import __version__
from dgm.archive.run import Run, identity_of
from dgm.domain import ActionId, Agent, Evaluation, Usage, Verdict
from dgm.errors import UserError
from dgm.exports.conversations import (
    AnsweredCall,
    ChatMessage,
    chat_messages,
    dump_json,
    evaluation_facts,
    find_calls,
    find_evaluations,
    guard_calls,
    read_threads,
)
from dgm.exports.files import new_folder
from dgm.exports.pack import make_scrubber
from dgm.exports.scrub import LocalIdentity
from dgm.messages import Role
from dgm.views.run import models_of

SCORER = "resolved"
"""Inspect's name of the verdict: C or I, as its own scorers have it."""
SHARE = "share"
"""Inspect's name of the share of tests that passed."""
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9.-]+")

Json = dict[str, Any]


def write_logs(run: Run, agent: Agent | None, target: Path, identity: LocalIdentity) -> dict[str, int]:
    """Write the logs of a run, or of one agent, into a new folder.

    Args:
        run: the run.
        agent: its evaluations; None: those of all agents.
        target: the new folder, for ``inspect view --log-dir``.
        identity: the facts about this machine that must not be in the files.

    Returns:
        Numbers of logs and of samples.

    Raises:
        UserError: ``inspect_ai`` is missing, the folder cannot be made, or no evaluation has a verdict.
        ArchiveCorrupt: a call is missing or damaged.
    """
    try:
        from inspect_ai.log import EvalLog, write_eval_log
    except ImportError as error:
        raise UserError(
            "Logs of Inspect need inspect_ai, which is not installed: pip install 'dgm[inspect]'"
        ) from error
    with new_folder(target) as draft:
        evaluations = find_evaluations(run, agent)
        if not evaluations:
            raise UserError(f"{target}: not written: no evaluation has a verdict yet")
        scrubber = make_scrubber(run.folder, identity)
        counts = {"logs": 0, "samples": 0}
        for number, group in groupby(evaluations, key=lambda item: item[1].agent):
            # An evaluation that was repeated counts once.
            newest = {(item.task, item.attempt): (action, item) for action, item in group}
            record = _log_record(run, run.tree.agents[number], list(newest.values()))
            log = EvalLog.model_validate(json.loads(scrubber.clean(dump_json(record))))
            # A name as Inspect gives its logs: time, task and id.
            parts = (log.eval.created, log.eval.task[:80], f"agent-{number}")
            write_eval_log(log, draft / f"{'_'.join(_UNNAMEABLE.sub('-', part) for part in parts)}.eval")
            counts["logs"] += 1
            counts["samples"] += len(newest)
    return counts


def _log_record(run: Run, agent: Agent, evaluations: Sequence[tuple[ActionId, Evaluation]]) -> Json:
    identity, benchmark = identity_of(run), str(run.settings()["benchmark"])
    calls = {action: find_calls(run, action) for action, _ in evaluations}
    samples = [_sample_record(run, action, item, calls[action]) for action, item in evaluations]
    tasks = list(dict.fromkeys(item.task for _, item in evaluations))
    answered = [call for group in calls.values() for call in group.values()]
    begun, ended = _time_range(answered)
    name = f"{run.config.get('id', identity.run)}-agent-{agent.id}"
    return {
        "status": "success",
        "eval": {
            "created": begun,
            "task": benchmark,
            "task_id": name,
            "eval_id": name,
            "run_id": identity.run,
            "dataset": {"name": benchmark, "samples": len(tasks), "sample_ids": tasks},
            "solver": f"agent-{agent.id}",
            "model": models_of(run)["solve"],
            "config": {"epochs": max(item.attempt + 1 for _, item in evaluations)},
            "packages": {"dgm": __version__},
            "metadata": {
                **identity.record(),
                "agent": agent.id,
                "parents": list(agent.parents),
                "commit": agent.commit,
                "operator": agent.operator,
            },
        },
        "results": {
            "total_samples": len(samples),
            "completed_samples": sum(item.verdict is not Verdict.INVALID for _, item in evaluations),
            "scores": _score_records([item for _, item in evaluations]),
        },
        "stats": {
            "started_at": begun,
            "completed_at": ended,
            "model_usage": _usage_records(answered),
        },
        "samples": samples,
    }


def _score_records(evaluations: Sequence[Evaluation]) -> list[Json]:
    """Return Inspect's metrics: the mean over tasks of their attempts' mean, and its standard error."""
    graded = [item for item in evaluations if item.verdict is not Verdict.INVALID]
    counts = {"scored_samples": len(graded), "unscored_samples": len(evaluations) - len(graded)}
    records = []
    for name, metric in ((SCORER, "accuracy"), (SHARE, "mean")):
        by_task: dict[str, list[float]] = defaultdict(list)
        for item in graded:
            resolved = float(item.verdict is Verdict.RESOLVED)
            by_task[item.task].append(resolved if name == SCORER else item.score)
        means = [fmean(values) for values in by_task.values()]
        error = stdev(means) / sqrt(len(means)) if len(means) > 1 else 0.0
        values = {metric: fmean(means), "stderr": error} if means else {}
        metrics = {key: {"name": key, "value": value} for key, value in values.items()}
        records.append({"name": name, "scorer": name, **counts, "metrics": metrics})
    return records


def _sample_record(
    run: Run, action: ActionId, evaluation: Evaluation, calls: Mapping[int, AnsweredCall]
) -> Json:
    with guard_calls(run, action):
        threads = read_threads(run, calls)
        messages = _inspect_messages(chat_messages(threads[0]) if threads else [])
    begun, ended = _time_range(calls.values())
    answer = next((message for message in reversed(messages) if message["role"] == Role.ASSISTANT), None)
    model = list(calls.values())[-1].event.model if calls else ""
    record: Json = {
        "id": evaluation.task,
        "epoch": evaluation.attempt + 1,
        "input": next((message["content"] for message in messages if message["role"] == Role.USER), ""),
        "target": "",
        "messages": messages,
        "output": {"model": model, "choices": [{"message": answer}] if answer else []},
        "model_usage": _usage_records(calls.values()),
        "started_at": begun,
        "completed_at": ended,
        "total_time": evaluation.cost.seconds,
        "uuid": f"{run.config.get('id', run.name)}-action-{action}",
        "metadata": {**evaluation_facts(identity_of(run), action, evaluation), "conversations": len(threads)},
    }
    if evaluation.verdict is Verdict.INVALID:
        message = "The infrastructure failed; this verdict counts nowhere."
        return {**record, "error": {"message": message, "traceback": "", "traceback_ansi": ""}}
    verdict = "C" if evaluation.verdict is Verdict.RESOLVED else "I"
    return {**record, "scores": {SCORER: {"value": verdict}, SHARE: {"value": evaluation.score}}}


def _inspect_messages(messages: Sequence[ChatMessage]) -> list[Json]:
    names: dict[str, str] = {}
    records = []
    for number, message in enumerate(messages, 1):
        record = {"id": str(number), "role": message["role"], "content": message["content"]}
        if reasoning := message.get("reasoning_content"):
            parts = [{"type": "reasoning", "reasoning": reasoning}]
            record["content"] = [*parts, {"type": "text", "text": message["content"]}]
        if calls := message.get("tool_calls"):
            names |= {call["id"]: call["function"]["name"] for call in calls}
            record["tool_calls"] = [
                {"id": call["id"], "function": call["function"]["name"], "type": "function"}
                | {"arguments": call["function"]["arguments"]}
                for call in calls
            ]
        if message["role"] == Role.TOOL:
            name = message.get("tool_call_id", "")
            record |= {"tool_call_id": name, "function": names.get(name)}
        records.append(record)
    return records


def _usage_records(calls: Iterable[AnsweredCall]) -> dict[str, Json]:
    """Return Inspect's usage by model; its input tokens are those that the cache did not have."""
    totals: dict[str, Usage] = {}
    for call in calls:
        totals[call.event.model] = totals.get(call.event.model, Usage()) + call.event.usage
    return {
        model: {
            "input_tokens": max(0, usage.input_tokens - usage.cached_tokens - usage.written_tokens),
            "input_tokens_cache_read": usage.cached_tokens,
            "input_tokens_cache_write": usage.written_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "total_cost": usage.usd,
        }
        for model, usage in totals.items()
    }


def _time_range(calls: Iterable[AnsweredCall]) -> tuple[str, str]:
    """Return the times of the first and the last answer; of the first second of 1970 if there was none."""
    times = sorted(call.at for call in calls) or [0.0]
    first, last = (
        datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds") for at in (times[0], times[-1])
    )
    return first, last
