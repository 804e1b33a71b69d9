"""A run as logs of Inspect, written by ``inspect_ai`` itself: a log for each agent, a sample for each evaluation.

A further attempt at a task is a further epoch of its sample. All texts are cleaned, as in a pack.
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain, groupby
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

VERDICT, SHARE = "resolved", "share"
"""Names of the scores: the verdict, and the share of tests that passed."""
SOLVED = "C"
"""Value of a verdict that Inspect counts as correct; else ``I``."""
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9.-]+")

Json = dict[str, Any]


def write_logs(run: Run, agent: Agent | None, target: Path, identity: LocalIdentity) -> dict[str, int]:
    """Write the logs of a run, or of one agent; return the numbers of logs and of samples.

    Raises:
        UserError: ``inspect_ai`` is missing, the folder cannot be made, or no evaluation has a verdict.
        ArchiveCorrupt: a call is missing or damaged.
    """
    try:
        from inspect_ai.log import EvalLog, write_eval_log
    except ImportError as error:
        raise UserError(
            "Inspect logs need inspect_ai, which is not installed: pip install 'dgm[inspect]'"
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
    calls = {action: list(find_calls(run, action).values()) for action, _ in evaluations}
    samples = [_sample_record(run, action, item, calls[action]) for action, item in evaluations]
    tasks = list(dict.fromkeys(item.task for _, item in evaluations))
    answered = list(chain.from_iterable(calls.values()))
    begun, ended = _time_range(answered)
    name = f"{run.config.get('id', identity.run)}-agent-{agent.id}"
    facts = {"parents": list(agent.parents), "commit": agent.commit, "operator": agent.operator}
    return {
        "status": "success",
        "eval": {
            "created": begun,
            "task": benchmark,
            "tags": [f"agent-{agent.id}"],
            "task_id": name,
            "eval_id": name,
            "run_id": identity.run,
            "dataset": {"name": benchmark, "samples": len(tasks), "sample_ids": tasks},
            "solver": f"agent-{agent.id}",
            "model": models_of(run)["solve"],
            "config": {"epochs": max(item.attempt + 1 for _, item in evaluations)},
            "packages": {"dgm": __version__},
            "metadata": {**identity.record(), "agent": agent.id, **facts},
        },
        "results": {
            "total_samples": len(samples),
            "completed_samples": sum("scores" in sample for sample in samples),
            "scores": [_score_record(samples, VERDICT, "accuracy"), _score_record(samples, SHARE, "mean")],
        },
        "stats": {"started_at": begun, "completed_at": ended, "model_usage": _usage_records(answered)},
        "samples": samples,
    }


def _score_record(samples: Sequence[Json], name: str, metric: str) -> Json:
    """Return Inspect's metrics: the mean over tasks of their attempts' mean, and its standard error."""
    by_task: dict[str, list[float]] = defaultdict(list)
    graded = [sample for sample in samples if "scores" in sample]
    for sample in graded:
        value = sample["scores"][name]["value"]
        by_task[sample["id"]].append(float(value == SOLVED if name == VERDICT else value))
    means = [fmean(values) for values in by_task.values()]
    error = stdev(means) / sqrt(len(means)) if len(means) > 1 else 0.0
    values = {metric: fmean(means), "stderr": error} if means else {}
    return {
        "name": name,
        "scorer": name,
        "scored_samples": len(graded),
        "unscored_samples": len(samples) - len(graded),
        "metrics": {key: {"name": key, "value": value} for key, value in values.items()},
    }


def _sample_record(run: Run, action: ActionId, evaluation: Evaluation, calls: Sequence[AnsweredCall]) -> Json:
    with guard_calls(run, action):
        threads = read_threads(run, calls)
        messages = _inspect_messages(chat_messages(threads[0]) if threads else [])
    prompts = (message["content"] for message in messages if message["role"] == Role.USER)
    answers = [message for message in messages if message["role"] == Role.ASSISTANT]
    begun, ended = _time_range(calls)
    record: Json = {
        "id": evaluation.task,
        "epoch": evaluation.attempt + 1,
        "input": next(prompts, ""),
        "target": "",
        "messages": messages,
        "output": {
            "model": calls[-1].event.model if calls else "",
            "choices": [{"message": answer} for answer in answers[-1:]],
        },
        "model_usage": _usage_records(calls),
        "started_at": begun,
        "completed_at": ended,
        "total_time": evaluation.cost.seconds,
        "uuid": f"{run.config.get('id', run.name)}-action-{action}",
        "metadata": {**evaluation_facts(identity_of(run), action, evaluation), "conversations": len(threads)},
    }
    if evaluation.verdict is Verdict.INVALID:
        reason = "The infrastructure failed; this verdict counts nowhere."
        return {**record, "error": {"message": reason, "traceback": "", "traceback_ansi": ""}}
    verdict = SOLVED if evaluation.verdict is Verdict.RESOLVED else "I"
    return {**record, "scores": {VERDICT: {"value": verdict}, SHARE: {"value": evaluation.score}}}


def _inspect_messages(messages: Sequence[ChatMessage]) -> list[Json]:
    names: dict[str, str] = {}
    records = []
    for number, message in enumerate(messages, 1):
        record = {"id": str(number), "role": message["role"], "content": message["content"]}
        if reasoning := message.get("reasoning_content"):
            text = {"type": "text", "text": message["content"]}
            record["content"] = [{"type": "reasoning", "reasoning": reasoning}, text]
        if calls := message.get("tool_calls"):
            names |= {call["id"]: call["function"]["name"] for call in calls}
            record["tool_calls"] = [
                {
                    "id": call["id"],
                    "function": call["function"]["name"],
                    "arguments": call["function"]["arguments"],
                }
                for call in calls
            ]
        if message["role"] == Role.TOOL:
            name = message.get("tool_call_id", "")
            record |= {"tool_call_id": name, "function": names.get(name)}
        records.append(record)
    return records


def _usage_records(calls: Sequence[AnsweredCall]) -> dict[str, Json]:
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


def _time_range(calls: Sequence[AnsweredCall]) -> tuple[str, str]:
    """Return the times of the first and the last answer; of the first second of 1970 if there was none."""
    times = sorted(call.at for call in calls) or [0.0]
    first, last = (
        datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds") for at in (times[0], times[-1])
    )
    return first, last
