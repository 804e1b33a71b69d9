"""The state of a search: its progress, spend and findings."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.analysis.best import rate_best
from dgm.analysis.budgets import describe_budget_use
from dgm.analysis.summary import run_summary
from dgm.archive.deaths import CANNOT_GO_ON
from dgm.archive.history import LIVING
from dgm.archive.run import Run
from dgm.domain import AgentId
from dgm.show.best import HIGHEST, STAR_MEANS, best_text, highest_text
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.spend import spend_lines
from dgm.show.words import BEST, OFFLINE_NOTE, clock_text, count_text

_STATES = {
    "running": Tone.GOOD,
    "paused": Tone.WARN,
    "interrupted": Tone.WARN,
    CANNOT_GO_ON: Tone.WARN,
}


def status_lines(run: Run, facts: Mapping[str, Any] | None = None) -> Sequence[Line]:
    """Return the state of a run for people.

    Args:
        run: the run.
        facts: its ``run_summary``, which finds the best agent and may take long; computed here if None.
    """
    facts = run_summary(run) if facts is None else facts
    lines = [*_head_lines(facts), *_count_lines(run, facts), *spend_lines(run.tree)]
    # A notice that needs a person stands near the top.
    if facts["paused"]:
        lines.insert(1, fact_line("paused", one_line(facts["paused"], 200), Tone.WARN))
    if facts["waiting"]:
        lines.insert(3, waiting_line(facts["waiting"], facts["run"]))
    if facts["refusals"]:
        which = f"dgm log {one_line(facts['run'], 120)} --kind call_refused"
        lines.append(fact_line("refused", f"{facts['refusals']} requests of agents (which ones: {which})"))
    lines += [*_dead_end_lines(facts), *_model_lines(facts)]
    if facts["changes"]:
        lines.append(fact_line("changed", one_line(", ".join(facts["changes"]), 300)))
    if facts["withdrawn"]:
        lines.append(
            fact_line("withdrawn", f"{count_text(facts['withdrawn'], 'verdict')} after refusals of the model")
        )
    if best := facts["best"]:
        named = rate_best(run.tree, AgentId(best["id"]))
        lines.append(fact_line("best", f"{BEST} {best_text(named)}  {one_line(best['rationale'], 60)}"))
        lines.append(make_line(" " * 13, Span(STAR_MEANS, Tone.DIM)))
        if highest := highest_text(run.tree, named):
            lines.append(make_line(Span(f"{HIGHEST}: ", Tone.KEY), highest))
    if "offline" in facts["models"].values():
        lines.append(fact_line("note", OFFLINE_NOTE, Tone.WARN))
    return lines


def _dead_end_lines(facts: Mapping[str, Any]) -> Sequence[Line]:
    """Return the causes of death of a dead-end search's children, the last one's output, and possible help."""
    end = facts["dead_end"]
    if end is None:
        return []
    stages = ", ".join(f"{count} {one_line(stage, 40)}" for stage, count in end["stages"].items())
    said = f"{stages} in a row, none born between; the last: {one_line(end['reason'], 300)}"
    texts = end["output"] or ["nothing was printed"]
    names = ["last output", *[""] * (len(texts) - 1)]
    printed = [fact_line(name, one_line(text, 160)) for name, text in zip(names, texts, strict=True)]
    return [
        fact_line("stillborn", said, Tone.WARN),
        *printed,
        fact_line("may help", end["may_help"], Tone.WARN),
    ]


def _model_lines(facts: Mapping[str, Any]) -> Sequence[Line]:
    """Return the facts learned of the models, the present wait, and calls that were cut off."""
    notes, lines = facts["model_notes"], []
    for model, words in notes["learned"].items():
        lines.append(fact_line("learned", f"{one_line(model, 80)}: {one_line('; '.join(words), 200)}"))
    if waits := notes["waits"]:
        left = clock_text(max(0.0, waits["until"] - time.time()))
        said = f"{one_line(waits['model'], 80)} waits {left} more for its provider: {one_line(waits['words'], 160)}"
        lines.append(fact_line("waits", said, Tone.WARN))
    for call in facts["cut_calls"]:
        counted = "counted at" if call["in_spend"] else "to be counted at"
        model = one_line(call["model"], 80)
        which = (
            f"call {call['number']} of action {call['action']} ({model})"
            if call["action"]
            else f"a check of {model}"
        )
        said = (
            f"{which} was cut off; {counted} "
            f"its worst case until it is answered: {call['tokens']:,} tokens, {call['usd']:.4f} USD"
        )
        lines.append(fact_line("cut off", said, Tone.WARN))
    return lines


def fact_line(name: str, text: str, tone: Tone = Tone.PLAIN) -> Line:
    """Return a name in its column, and its text behind it."""
    return make_line(Span(f"{name:<13}", Tone.KEY), Span(text, tone))


def waiting_line(children: int, run: str) -> Line:
    """Say that children wait for a person, and which command decides on them."""
    who = "1 child waits" if children == 1 else f"{children} children wait"
    return fact_line("waiting", f"{who} for you: dgm approve {one_line(run, 120)}", Tone.WARN)


def _head_lines(facts: Mapping[str, Any]) -> Sequence[Line]:
    state = facts["state"]
    ran = make_line(
        Span(f"{'run':<13}", Tone.KEY),
        f"{one_line(facts['run'], 120)} (",
        Span(one_line(state, 200), _STATES.get(state, Tone.PLAIN)),
        f", {facts['seconds']:.0f} s, {_running_text(state, facts['running'])})",
    )
    what = f"{facts['benchmark']} with {facts['model']}, policy {facts['policy']}, in {facts['sandbox']}"
    return [ran, fact_line("searches", one_line(what, 300))]


def _running_text(state: str, actions: int) -> str:
    if state in LIVING or not actions:
        return f"{actions} running"
    return f"{actions} under way when it {'was cut off' if state == 'interrupted' else 'ended'}"


def _count_lines(run: Run, facts: Mapping[str, Any]) -> Sequence[Line]:
    graded, budget = facts["evaluations"], facts["budget"]
    goal = f" of {budget['evaluations']}" if budget["evaluations"] else ""
    dead = ", ".join(f"{n} {one_line(stage, 40)}" for stage, n in facts["stillborn"].items())
    verdicts = ", ".join(f"{graded[name]} {name}" for name in ("resolved", "unresolved", "invalid"))
    taken = describe_budget_use(run.tree)
    return [
        fact_line("agents", f"{facts['agents']}" + (f"; stillborn: {dead}" if dead else "")),
        fact_line("evaluations", f"{graded['graded']}{goal}: {verdicts}"),
        *([fact_line("budget", taken)] if taken else []),
    ]
