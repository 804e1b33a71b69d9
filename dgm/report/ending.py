"""The second half of the page: the best line, the tasks, the spend, the failures, and the way to repeat the run."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.analysis.accounts import Purpose
from dgm.domain import Usage, Verdict
from dgm.report.facts import RunReport
from dgm.report.markup import Html, h
from dgm.report.patches import render_diff
from dgm.report.section import PageSection, facts_table, html_table, lead_paragraph, paragraph, points_text
from dgm.report.steps import PathStep
from dgm.show.safe import one_line
from dgm.show.words import (
    BEST,
    UNTRIED,
    VERDICT_MARKS,
    count_text,
    interval_text,
    operator_text,
    tally_text,
    usage_text,
)

DIFF_BYTES = 20_000
"""Maximum bytes of HTML for one step's diff."""
DIFFS_BYTES = 600_000
"""Maximum bytes of HTML for all diffs."""
PRINTED = 120
"""Maximum lines of a diff that is always printed; a longer one is printed only where it was opened."""
PURPOSES = {
    Purpose.MAKING: "making agents that were born",
    Purpose.EVALUATING: "evaluating agents",
    Purpose.STILLBORN: "expansions that gave no agent",
    Purpose.UNFINISHED: "expansions that are not at their end",
}
LEAST_SAVING_USD = 0.00005
"""Smallest saving that is mentioned."""


def build_lineage(report: RunReport) -> PageSection:
    """Return the section of the steps from the seed to the best agent, with diffs."""
    steps = report.line.steps
    room = min(DIFF_BYTES, DIFFS_BYTES // max(1, len(steps) - 1))
    shown = [_step_part(report, step, room) for step in steps]
    if report.line.left_out:
        shown.insert(1, paragraph(f"… {report.line.left_out:,} steps are left out …"))
    said = (
        "The best agent is the seed."
        if len(report.line.agents) == 1
        else "Each step from the seed to the best agent: why it was made, what it changed, and how it did against its "
        "parent on the search tasks that both tried. Single steps rest on few tasks; none of them is a finding."
    )
    return PageSection("lineage", "The best agent, step by step", [lead_paragraph(said), *shown])


def _step_part(report: RunReport, step: PathStep, room: int) -> Html:
    agent = step.agent
    kind = operator_text(agent.operator, step.aim)
    others = f" of {' and '.join(map(str, agent.parents))}" if len(agent.parents) > 1 else ""
    star = f" {BEST} best" if agent.id == report.best else ""
    parts = [
        h("h3", {}, f"Agent {agent.id}{star} ", h("small", {}, h("bdi", {}, kind), others)),
        h("p", {"class": "why", "dir": "auto"}, one_line(agent.rationale, 300) or "no rationale was given"),
        h("p", {"class": "small"}, *_step_numbers(step)),
    ]
    if agent.parents:
        parts.append(_diff_part(report, step, room))
    return h("article", {"class": "step", "id": f"agent-{agent.id}"}, *parts)


def _step_numbers(step: PathStep) -> list[str]:
    said: list[str] = [f"own {tally_text(step.own)}"]
    if step.own.n:
        said.append(f" ({interval_text(step.own)})")
    said.append(f", clade {tally_text(step.clade)}")
    pairs = step.against
    if pairs and step.gain is not None:
        sign = "plus" if step.gain > 0 else "minus" if step.gain < 0 else "soft"
        said += [
            f"; on {count_text(pairs.first.n, 'task')} that its parent tried too: ",
            h("strong", {"class": sign}, points_text(step.gain)),
            f" ({len(pairs.gained)} gained, {len(pairs.lost)} lost)",
        ]
    elif pairs:
        said.append("; no task that its parent tried too")
    return said


def _diff_part(report: RunReport, step: PathStep, room: int) -> Html:
    if step.damage:
        return h("p", {"class": "soft"}, f"The diff is not there: {one_line(step.damage, 200)}")
    command = f"dgm diff {shlex.quote(one_line(report.run['run'], 100))} {step.agent.id}"
    found = render_diff(step.patch, room, command)
    files = count_text(found.files, "file")
    summary = h("summary", {}, f"What it changed: {files}, +{found.added:,} −{found.removed:,} lines")
    printed = {"data-p": ""} if found.lines <= PRINTED else {}
    return h("details", printed, summary, found.html)


def build_tasks(report: RunReport) -> PageSection:
    """Return the section of the tasks that the line resolved."""
    found = report.matrix
    if not found.rows:
        return PageSection("tasks", "Tasks along this line", [lead_paragraph("The run has no tasks yet.")])
    head = [h("th", {}, "task"), *(h("th", {"scope": "col"}, str(agent)) for agent in found.agents)]
    head.append(h("th", {"scope": "col"}, "all agents"))
    rows = []
    for row in found.rows:
        cells = [_verdict_cell(verdict) for verdict in row.verdicts]
        everyone = h("td", {"class": "s"}, f"{row.resolved:,} of {row.tried:,}" if row.tried else "not tried")
        name = h("th", {"scope": "row"}, h("bdi", {}, one_line(row.task, 80)))
        rows.append(h("tr", {}, name, *cells, everyone))
    left_out = [
        f"{count:,} {what} are left out."
        for count, what in (
            (found.agents_left_out, "agents between the first two of these columns"),
            (found.tasks_left_out, "tasks that would come last"),
        )
        if count
    ]
    marks = VERDICT_MARKS
    return PageSection(
        "tasks",
        "Tasks along this line",
        [
            lead_paragraph(
                f"First attempts of the agents from the seed to the best: {marks[Verdict.RESOLVED]} resolved, "
                f"{marks[Verdict.UNRESOLVED]} not resolved, {UNTRIED} not tried. Tasks are in the order in which the "
                f"line first resolves them; the last column counts the whole archive. {' '.join(left_out)}"
            ),
            h(
                "div",
                {"class": "wide"},
                h("table", {"class": "cells"}, h("thead", {}, h("tr", {}, *head)), h("tbody", {}, *rows)),
            ),
        ],
    )


def _verdict_cell(verdict: Verdict | None) -> Html:
    if verdict is None:
        return h("td", {}, UNTRIED)
    return h("td", {"class": "y" if verdict is Verdict.RESOLVED else "x"}, VERDICT_MARKS[verdict])


def build_spend(report: RunReport) -> PageSection:
    """Return the section of the search's spend, by role and model and by purpose."""
    if not report.spend.calls:
        return PageSection("spend", "Spend", [lead_paragraph("No model was called.")])
    dearest = sorted(report.by.items(), key=lambda item: (-item[1].usd, -item[1].tokens, item[0]))
    who = [
        ((h("bdi", {}, one_line(role, 60)), h("bdi", {}, one_line(model, 120))), usage)
        for (role, model), usage in dearest
    ]
    why = [((PURPOSES[purpose],), usage) for purpose, usage in report.purposes.items()]
    parts = [
        lead_paragraph(
            f"The search took {_usage_amount_text(report.spend)}, failed and stillborn work included."
        ),
        _spend_table(("role", "model"), who, report.spend),
        _spend_table(("what for",), why, Usage(usd=report.spend.usd)),
    ]
    if saving := saving_text(report.saved_usd):
        parts.append(paragraph(f"{saving[0].upper()}{saving[1:]}."))
    if report.found:
        parts.append(
            paragraph(f"The holdout evaluation took {_usage_amount_text(report.found.spend)} on top of that.")
        )
    return PageSection("spend", "Spend", parts)


def saving_text(usd: float) -> str:
    """Return the saving by the providers' caches as a clause; empty for next to nothing."""
    if abs(usd) < LEAST_SAVING_USD:
        return ""
    if usd < 0:
        return f"writing to the providers' caches cost {-usd:.4f} USD more than reading from them saved"
    return f"the providers' caches saved {usd:.4f} USD"


def _usage_amount_text(usage: Usage) -> str:
    """Return the text of ``usage_text``; without money where there was none."""
    return usage_text(usage) if usage.usd else usage_text(usage).rpartition(",")[0]


def _spend_table(names: Sequence[str], rows: Sequence[tuple[Sequence[str], Usage]], whole: Usage) -> Html:
    """Return the table of spend; columns in which ``whole`` has nothing are left out."""
    head = ["calls", "input tokens", *(["of these cached"] if whole.cached_tokens else []), "output tokens"]
    head += ["USD"] if whole.usd else []
    lines = []
    for said, usage in rows:
        cached = [usage.cached_tokens] if whole.cached_tokens else []
        counts = [usage.calls, usage.input_tokens, *cached, usage.output_tokens]
        usd = [f"{usage.usd:.4f}"] if whole.usd else []
        lines.append((*said, *(f"{count:,}" for count in counts), *usd))
    return html_table((*names, *head), lines, numbers=range(len(names), len(names) + len(head)))


def build_failures(report: RunReport) -> PageSection:
    """Return the section of the failures, by kind."""
    found = report.failures
    dead = [(f"{operator}: {stage}", count) for (operator, stage), count in found.stillborn.items()]
    parts = [
        *_dead_end_parts(report.run["dead_end"]),
        *_kind_parts("Tasks not resolved, by reason", report.unresolved),
        *_kind_parts("Expansions without a child, by operator and stage", dead),
        *_kind_parts(
            "Evaluations that the infrastructure failed (performed again, and counted nowhere)", found.invalid
        ),
        *_kind_parts("Actions that ended without an outcome", found.lost),
        *_kind_parts("What the gateway refused to agents", list(found.refused.items())),
    ]
    said = "# stands for a number." if parts else "Nothing went wrong."
    return PageSection("failures", "Failures by kind", [lead_paragraph(said), *parts])


def _dead_end_parts(end: Mapping[str, Any] | None) -> list[Html]:
    """Return the reason why the search could not go on; empty for any other search."""
    if end is None:
        return []
    stages = ", ".join(f"{count} {one_line(stage, 40)}" for stage, count in end["stages"].items())
    said = (
        f"Children that died in a row, none born between: {stages}. The last: {one_line(end['reason'], 300)}"
    )
    printed = "\n".join(one_line(text, 160) for text in end["output"]) or "nothing was printed"
    return [
        h("h3", {}, "The search could not go on"),
        h("p", {"dir": "auto"}, said),
        h("pre", {"class": "command"}, printed),
        paragraph(f"What may help: {end['may_help']}."),
    ]


def _kind_parts(name: str, counts: Sequence[tuple[str, int]]) -> list[Html]:
    if not counts:
        return []
    rows = [(f"{count:,}", h("bdi", {}, one_line(what, 200))) for what, count in counts]
    return [h("h3", {}, name), html_table(("times", "kind"), rows, numbers=(0,), text=(1,))]


def build_reproduction(report: RunReport) -> PageSection:
    """Return the section with command, versions, seeds and commits."""
    found = report.reproduction
    said = [
        ("random seed", str(found.seed)),
        ("sandbox", found.sandbox),
        ("sessions", "1" if found.sessions == 1 else f"{found.sessions:,} (the run was resumed)"),
        *([("changed at a resume", ", ".join(found.changed))] if found.changed else []),
        *((f"version of {name}", value) for name, value in found.versions.items()),
        *((f"commit of agent {agent}", commit) for agent, commit in found.commits.items()),
    ]
    rows = [(name, h("bdi", {}, one_line(value, 120))) for name, value in said]
    parts = [facts_table(rows)]
    if found.command:
        budget = "; resuming it may have changed its budget" if found.sessions > 1 else ""
        parts = [
            paragraph(f"The same search with the same settings{budget}:"),
            h("pre", {"class": "command"}, found.command),
            paragraph(
                "With several workers the order in which steps end is not in the seed's hand, so another run is "
                "another sample. What this one decided and graded can be checked from its record, without a model:"
            ),
            h("pre", {"class": "command"}, "\n".join(found.replays)),
            *parts,
        ]
    else:
        parts.insert(
            0,
            paragraph(
                "This is not a search of its own that dgm run would begin; its settings are in run.json."
            ),
        )
    return PageSection("reproduce", "How to reproduce it", parts)
