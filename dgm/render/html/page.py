"""The report as one HTML file that loads nothing: no network, no font, no script but its own.

A content security policy makes the browser keep to it: it runs only the one script and the one style whose hashes it
names. A run that has ended gives the same bytes each time, so the page has no creation date.
"""

import base64
import hashlib
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from dgm.analysis.accounts import Purpose
from dgm.archive.history import LIVING
from dgm.render import fmt, report_text
from dgm.render.diff import DiffLine, LineKind, parse_diff
from dgm.render.html import figures
from dgm.render.html.svg import clean, interval_bar, read_template
from dgm.render.safe import one_line
from dgm.stats.better import JUDGED
from dgm.views.agents import AgentRow
from dgm.views.best_line import ReportStep
from dgm.views.holdout import Answer
from dgm.views.report import OperatorView, ReportView, models_text
from dgm.views.values import UsageView

DIFF_CHARS, DIFFS_CHARS = 12_000, 400_000
"""Maximum characters of one diff, and of all diffs."""
LONGEST = 1_000
"""Maximum characters of a line of a diff."""
PRINTED = 120
"""Maximum lines of a diff that is always printed; a longer one is printed only if it was opened."""
BADGES = {
    Answer.BETTER: ("yes", "✓ shown to be better"),
    Answer.WORSE: ("no", "✗ shown to be worse"),
    Answer.NOT_SHOWN: ("unclear", "≈ not shown to be better"),
    Answer.NOT_EXAMINED: ("", "… not examined yet"),
}
PURPOSES = {
    Purpose.MAKING: "making agents that were born",
    Purpose.EVALUATING: "evaluating agents",
    Purpose.STILLBORN: "expansions without a child",
    Purpose.UNFINISHED: "expansions that have not ended",
}
STATES = {
    "running": "still going on",
    "paused": "waiting for its models' provider",
    "interrupted": "its process died before it ended",
    "goal": "ended at its goal",
}
ELEMENTS = {
    LineKind.ADDED: "ins",
    LineKind.REMOVED: "del",
    LineKind.HUNK: "b",
    LineKind.NOTE: "b",
}


class DiffExcerpt(NamedTuple):
    """A diff as it stands on the page."""

    files: int
    added: int
    removed: int
    lines: Sequence[tuple[str, str]]
    """Name of the element, empty for an unchanged line, and text."""
    short: bool


class StepExcerpt(NamedTuple):
    """A step of the best agent's line as it stands on the page."""

    row: ReportStep
    kind: str
    sign: str
    diff: DiffExcerpt | None


def render_page(view: ReportView) -> bytes:
    """Return the whole file, in UTF-8."""
    environment = Environment(
        autoescape=True, finalize=clean, undefined=StrictUndefined, loader=FunctionLoader(read_template)
    )
    environment.filters["line"] = one_line
    environment.filters["sentence"] = lambda text: f"{text[:1].upper()}{text[1:]}."
    style = "".join(map(read_template, ("palette.css", "figure.css", "page.css")))
    script = read_template("page.js")
    steps = view.lineage.steps
    room = min(DIFF_CHARS, DIFFS_CHARS // max(1, len(steps) - 1))
    progress = (
        (figures.draw_progress_evaluations(view), "over evaluations"),
        (
            figures.draw_progress_spend(view),
            "over spend" if view.spend.usd else "over tokens (no money was spent)",
        ),
        (figures.draw_progress_time(view), "over wall time of the sessions"),
    )
    gains = sum(line.gain is not None for line in view.operators)
    page = environment.get_template("report.html").render(
        view=view,
        fmt=fmt,
        text=report_text,
        bar=interval_bar,
        naive=_naive_text,
        style=Markup(style),
        script=Markup(script),
        policy=(
            f"default-src 'none'; style-src '{_csp_hash(style)}'; script-src '{_csp_hash(script)}'; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        ),
        sections=[item for item in SECTIONS if item[0] != "groups" or view.groups.kinds],
        badge=BADGES[view.answer],
        models=models_text(view.models),
        dates=_dates_text(view),
        state=STATES.get(view.state, f"ended: {view.state}"),
        going_on=view.state in LIVING,
        tiles=_tiles(view),
        progress=[(drawing, caption) for drawing, caption in progress if drawing],
        tree=figures.draw_tree(view),
        operators=[_operator_row(line) for line in view.operators],
        operator_figure=figures.draw_operators(view) if gains > 1 else None,
        judged=JUDGED,
        steps=[_excerpt_step(step, view, room) for step in steps],
        spend=[
            (one_line(part.role, 60), one_line(part.model, 120), *_usage_cells(part))
            for part in view.spend.by
        ],
        purposes=[
            (PURPOSES[purpose], *_usage_cells(usage)) for purpose, usage in view.spend.purposes.items()
        ],
        failures=list(_failure_tables(view)),
        facts=list(_reproduction_facts(view)),
    )
    return page.encode() + b"\n"


SECTIONS = (
    ("headline", "Is the best agent better than the seed?"),
    ("progress", "Progress"),
    ("tree", "The tree of agents"),
    ("operators", "Operators"),
    ("lineage", "The best agent, step by step"),
    ("tasks", "Tasks along this line"),
    ("groups", "By kind and module"),
    ("spend", "Spend"),
    ("failures", "Failures by kind"),
    ("reproduce", "How to reproduce it"),
)


def _csp_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _dates_text(view: ReportView) -> str:
    began, ended = (
        time.strftime("%Y-%m-%d %H:%M", time.gmtime(at)) for at in (view.began_unix_s, view.ended_unix_s)
    )
    if began == ended:
        return began
    return f"{began} to {ended.split()[1] if began.split()[0] == ended.split()[0] else ended}"


def _naive_text(agent: AgentRow) -> str:
    abandoned = f"; {fmt.count(agent.abandoned, 'task')} abandoned" if agent.abandoned else ""
    return f"{fmt.tally(agent.own)} ({fmt.interval(agent.own.interval)}{abandoned})"


def _tiles(view: ReportView) -> Sequence[tuple[str, str, str]]:
    tokens, models = (
        f"{report_text.short_number(view.spend.tokens)} tokens",
        {part.model for part in view.spend.by},
    )
    names = fmt.count(len(models), "model")
    paid = view.spend.usd >= 0.01
    limit = fmt.money(view.budget_usd) if view.budget_usd else ""
    return (
        (
            "Agents",
            f"{view.agents:,}",
            f"{view.stillborn:,} stillborn" if view.stillborn else "none stillborn",
        ),
        (
            "Evaluations",
            f"{view.evaluations:,}",
            f"{view.resolved:,} resolved, on {fmt.count(view.tasks, 'task')}",
        ),
        ("Model calls", f"{view.spend.calls:,}", f"{tokens}, {names}" if paid else names),
        (
            "Spent on the search",
            fmt.money(view.spend.usd) if paid else tokens,
            f"limit {limit}" if limit else "no limit of money",
        ),
        (
            "Wall time",
            fmt.duration(view.seconds),
            f"{fmt.count(view.workers, 'parallel action')}, {one_line(view.reproduce.sandbox, 40)}",
        ),
    )


def _operator_row(line: OperatorView) -> tuple[str, ...]:
    gain, ends = line.gain, line.gain.interval if line.gain else None
    within = f" ({fmt.points(ends[0])} to {fmt.points(ends[1])})" if ends else " (one child)"
    counts = (
        ("waiting for approval", line.waiting),
        ("unfinished", line.unfinished),
    )
    more = [f"{count} {name}" for name, count in counts if count]
    for name, kinds in (("stillborn", line.stillborn), ("aims", line.aims)):
        if kinds:
            more.append(
                f"{name}: " + ", ".join(f"{one_line(kind, 40)} {n}" for kind, n in list(kinds.items())[:8])
            )
    return (
        one_line(line.operator, 60),
        *(f"{count:,}" for count in (line.tried, line.born, line.judged, line.better)),
        f"{fmt.points(gain.mean)}{within}" if gain else fmt.DASH,
        fmt.spend(line.spend),
        "; ".join(more) or fmt.DASH,
    )


def _excerpt_step(step: ReportStep, view: ReportView, room: int) -> StepExcerpt:
    name = one_line(step.operator, 80)
    kind = f"{name}:{one_line(step.aim, 40)}" if step.aim else name
    sign = (
        "plus"
        if step.delta and step.delta.difference > 0
        else "minus"
        if step.delta and step.delta.difference < 0
        else "soft"
    )
    command = f"dgm show {one_line(view.run, 100)} {step.agent} --diff"
    return StepExcerpt(step, kind, sign, excerpt_diff(step.patch, room, command) if step.patch else None)


def excerpt_diff(patch: str, room: int, command: str) -> DiffExcerpt:
    """Return a diff in at most about ``room`` characters; the middle of a longer one is left out.

    Args:
        patch: as git writes it.
        room: characters.
        command: prints all of it.
    """
    changes = parse_diff(patch)
    lines: list[tuple[str, str]] = []
    for change in changes:
        lines.append(("strong", change.path))
        lines += [
            (ELEMENTS.get(line.kind, ""), _shorten(line))
            for line in change.lines
            if line.kind is not LineKind.HEAD
            or line.text.startswith(("new file", "deleted file", "old mode", "new mode"))
        ]
    shown = lines
    if sum(len(text) for _, text in lines) > room:
        head = _count_fitting(lines, room * 3 // 4)
        tail = _count_fitting(lines[head:][::-1], room // 4)
        cut = f"… {len(lines) - head - tail:,} lines left out; {command} prints them all …"
        shown = [*lines[:head], ("b", cut), *lines[len(lines) - tail :]]
    added, removed = sum(change.added for change in changes), sum(change.removed for change in changes)
    return DiffExcerpt(len(changes), added, removed, shown, len(shown) <= PRINTED)


def _shorten(line: DiffLine) -> str:
    text = line.text
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def _count_fitting(lines: Sequence[tuple[str, str]], room: int) -> int:
    for count, (_, text) in enumerate(lines):
        room -= len(text)
        if room < 0:
            return count
    return len(lines)


def _usage_cells(usage: UsageView) -> tuple[str, ...]:
    counts = (usage.calls, usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    return (*(f"{count:,}" for count in counts), f"{usage.usd:.4f}" if usage.usd else fmt.DASH)


def _failure_tables(view: ReportView) -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
    failures = view.failures
    stillborn = [(f"{count.operator}: {count.stage}", count.times) for count in failures.stillborn]
    for title, counts in (
        ("Tasks not resolved, by reason", [(count.reason, count.times) for count in failures.unresolved]),
        ("Expansions without a child, by operator and stage", stillborn),
        (
            "Evaluations that the infrastructure failed (repeated, and counted nowhere)",
            [(count.reason, count.times) for count in failures.invalid],
        ),
        ("Actions that ended without an outcome", [(count.reason, count.times) for count in failures.lost]),
        (
            "Requests of agents that the gateway refused",
            [(count.reason, count.times) for count in failures.refused],
        ),
    ):
        if counts:
            yield title, [(f"{times:,}", one_line(reason, 200)) for reason, times in counts]


def _reproduction_facts(view: ReportView) -> Iterator[tuple[str, str]]:
    facts = view.reproduce
    yield "random seed", str(facts.seed)
    yield "sandbox", one_line(facts.sandbox, 120)
    yield "sessions", "1" if facts.sessions == 1 else f"{facts.sessions:,} (the run was resumed)"
    if facts.changed:
        yield "changed at a resume", one_line(", ".join(facts.changed), 120)
    for name, version in facts.versions.items():
        yield f"version of {name}", one_line(version, 120)
    for agent, commit in facts.commits.items():
        yield f"commit of agent {agent}", one_line(commit, 120)
