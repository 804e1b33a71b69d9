"""Replays as output: one line each for people, one document for programs."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import Action, AgentId, Evaluate, Evaluation
from dgm.evaluation.exam import Comparison
from dgm.replay import Divergence, EvaluationAgain, LiveEvaluations, LiveStep, Match, StepAgain
from dgm.show.safe import one_line
from dgm.show.words import OFFLINE_NOTE, count_text, interval_text, mcnemar_text, operator_text, tally_text

WORDS = {Match.SAME: "identical", Match.DIFFERENT: "differs"}
SHOWN = 300


def summary_text(what: str, matches: Sequence[Match], began: float) -> str:
    """Return one line on how many came out the same; ``what`` is one thing and its treatment, as in ``step``."""
    counts = Counter(matches)
    noun, _, how = what.partition(" ")
    things = f"{count_text(len(matches), noun)} {how}".rstrip()
    seconds = f"{time.monotonic() - began:.1f} s"
    if counts[Match.SAME] == len(matches):
        return f"{things}, all identical, {seconds}"
    parts = [f"{counts[match]} {WORDS.get(match, match.value)}" for match in Match if counts[match]]
    return f"{things}: {', '.join(parts)}; {seconds}"


def head_record(run: Run, what: str, matches: Sequence[Match], began: float) -> dict[str, Any]:
    """Return the part that the documents of lineages and evaluations share."""
    counts = Counter(match.value for match in matches)
    return {
        "run": run.name,
        "replay": what,
        "identical": all(match is Match.SAME for match in matches),
        "counts": {match.value: counts[match.value] for match in Match},
        "seconds": round(time.monotonic() - began, 3),
    }


# Decisions


def action_text(action: Action | None) -> str:
    """Return an action as text for people."""
    if action is None:
        return "nothing more"
    if isinstance(action, Evaluate):
        attempt = f", attempt {action.attempt}" if action.attempt else ""
        return f"evaluate agent {action.agent} on {action.task}{attempt}"
    shown = f", shown actions {', '.join(map(str, action.evidence))}" if action.evidence else ""
    parents = " and ".join(map(str, action.parents))
    return f"expand agent {parents} by {operator_text(action.operator, action.aim)}{shown}"


def action_record(action: Action | None) -> dict[str, Any] | None:
    """Return an action as a document."""
    if action is None:
        return None
    if isinstance(action, Evaluate):
        return {"kind": "evaluate", "agent": action.agent, "task": action.task, "attempt": action.attempt}
    evidence = list(action.evidence)
    return {
        "kind": "expand",
        "parents": list(action.parents),
        "operator": action.operator,
        "aim": action.aim,
        "evidence": evidence,
    }


# Lineages


def step_text(step: StepAgain) -> str:
    """Return one step of a lineage on one line."""
    word = WORDS.get(step.match, step.match.value)
    why = f"  {one_line(str(step.divergence), SHOWN)}" if step.divergence else ""
    return f"agent {step.agent:<4} {step.commit[:12]}  {word:<13} {step.seconds:5.1f} s{why}"


def step_record(step: StepAgain) -> dict[str, Any]:
    """Return one step of a lineage as a document."""
    divergence = divergence_record(step.divergence)
    seconds = round(step.seconds, 3)
    return {**asdict(step), "match": step.match.value, "divergence": divergence, "seconds": seconds}


def divergence_record(divergence: Divergence | None) -> dict[str, Any] | None:
    """Return the first difference as a document."""
    if divergence is None:
        return None
    return {"action": divergence.action, "call": divergence.call, "what": divergence.what}


def live_step_text(step: LiveStep) -> str:
    """Return one step by another model on one line."""
    end = f"born as {step.born[:12]}" if step.born else f"stillborn ({step.stage})"
    same = ", the recorded one" if step.same else ""
    return f"agent {step.agent:<4} {step.commit[:12]}  {end}{same}: {one_line(step.said, 100)}"


# Evaluations


def again_text(again: EvaluationAgain) -> str:
    """Return one repeated evaluation on one line."""
    word = WORDS.get(again.match, again.match.value)
    said = again.divergence or f"{again.recorded.verdict}: {again.recorded.reason}"
    who = f"agent {again.recorded.agent:<4} {again.recorded.task}"
    return f"{word:<16} {who}: {one_line(str(said), SHOWN)}"


def again_record(again: EvaluationAgain) -> dict[str, Any]:
    """Return one repeated evaluation as a document."""
    return {
        "action": again.action,
        "agent": again.recorded.agent,
        "task": again.recorded.task,
        "attempt": again.recorded.attempt,
        "match": again.match.value,
        "recorded": {"verdict": again.recorded.verdict.value, "reason": again.recorded.reason},
        "again": {"verdict": again.verdict.value, "reason": again.reason} if again.verdict else None,
        "divergence": divergence_record(again.divergence),
        "seconds": round(again.seconds, 3),
    }


def live_text(agent: AgentId, done: Evaluation) -> str:
    """Return one live verdict on one line."""
    return f"agent {agent:<4} {done.verdict} {done.task}: {one_line(done.reason, 100)}"


def live_lines(done: LiveEvaluations, settings: Settings) -> list[str]:
    """Return the results of live evaluations for people."""
    lines = []
    if done.against_record:
        whole = done.against_record
        lines.append(f"on {count_text(whole.first.n, 'pair')} of agent and task (95 % Wilson intervals):")
        lines += _comparison_lines(whole, "recorded", settings.model)
        if len(done.agents) > 1:
            lines.append("  pairs on the same task are not independent; agent by agent:")
            lines += [f"    agent {agent}: {_comparison_text(one)}" for agent, one in done.agents.items()]
    for agent, one in done.against_seed.items():
        lines.append(
            f"agent {agent} against the seed, both by {settings.model}, on {count_text(one.first.n, 'task')}:"
        )
        lines += _comparison_lines(one, "seed", f"agent {agent}")
    if settings.model == "offline":
        lines.append(f"note: {OFFLINE_NOTE}")
    if done.missing:
        lines.append(f"{count_text(done.missing, 'pair')} without a live verdict")
    lines.append(
        f"recorded in {done.folder}; {count_text(done.spend.calls, 'call')}, {done.spend.usd:.4f} USD"
    )
    return lines


def _comparison_lines(found: Comparison, first: str, second: str) -> list[str]:
    width = max(len(first), len(second))
    lines = [
        f"  {name:<{width}}  {tally_text(tally):<12} {interval_text(tally)}"
        for name, tally in ((first, found.first), (second, found.second))
    ]
    lines.append(
        f"  {len(found.gained)} gained, {len(found.lost)} lost; {mcnemar_text(found.p, found.mid_p)}"
    )
    for word, names in (("gained", found.gained), ("lost", found.lost)):
        if names:
            lines.append(f"  {word}: {', '.join(names)}")
    return lines


def _comparison_text(found: Comparison) -> str:
    pairs = f"{len(found.gained)} gained, {len(found.lost)} lost; p = {found.p:.3f}"
    return f"{tally_text(found.first)} → {tally_text(found.second)}; {pairs}"
