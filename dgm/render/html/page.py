"""The report as one HTML file that loads nothing: no network, no font, no script but its own.

A content security policy makes the browser keep to it: it runs only the one script and the one style whose hashes it
names. A run that has ended gives the same bytes each time, so the page has no creation date.
"""

import base64
import hashlib
import time
from collections.abc import Sequence
from typing import NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from dgm.archive.run import LIVING
from dgm.render import fmt, report_text
from dgm.render.diff import LineKind, parse_diff
from dgm.render.html import figures
from dgm.render.html.svg import clean, interval_bar, read_template
from dgm.render.safe import one_line
from dgm.stats import JUDGED
from dgm.views.report import ReportView
from dgm.views.run import models_text

DIFF_CHARS, DIFFS_CHARS = 12_000, 400_000
"""Maximum characters of one diff, and of all diffs."""
LONGEST = 1_000
"""Maximum characters of a line of a diff."""
PRINTED = 120
"""Maximum lines of a diff that is always printed; a longer one is printed only if it was opened."""
STYLES = ("palette.css", "figure.css", "page.css")
ELEMENTS = {LineKind.ADDED: "ins", LineKind.REMOVED: "del", LineKind.HUNK: "b", LineKind.NOTE: "b"}
MODES = ("new file", "deleted file", "old mode", "new mode")


class DiffExcerpt(NamedTuple):
    """A diff as it stands on the page."""

    files: int
    added: int
    removed: int
    lines: Sequence[tuple[str, str]]
    """Name of the element, empty for an unchanged line, and text."""

    @property
    def short(self) -> bool:
        """Whether it is always printed."""
        return len(self.lines) <= PRINTED


def render_page(view: ReportView) -> bytes:
    """Return the whole file, in UTF-8."""
    environment = Environment(
        autoescape=True, finalize=clean, undefined=StrictUndefined, loader=FunctionLoader(read_template)
    )
    environment.filters["line"] = one_line
    environment.filters["sentence"] = lambda text: f"{text[:1].upper()}{text[1:]}."
    environment.filters["utc"] = lambda at: time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))
    style, script = _read_assets()
    room = min(DIFF_CHARS, DIFFS_CHARS // max(1, len(view.lineage.steps) - 1))
    command = f"dgm show {one_line(view.run, 100)}"
    page = environment.get_template("report.html").render(
        view=view,
        fmt=fmt,
        text=report_text,
        bar=interval_bar,
        style=Markup(style),
        script=Markup(script),
        policy=content_policy(),
        models=models_text(view.models),
        going_on=view.state in LIVING,
        progress=figures.draw_progress(view.curve, view.seed_agent.own, paid=bool(view.spend.usd)),
        tree=figures.draw_tree(view.tree.agents, view.lineage.agents),
        gains=figures.draw_operators(view.operators),
        drift=figures.draw_drift(view),
        front=figures.draw_front(view),
        judged=JUDGED,
        excerpt=lambda step: excerpt_diff(step.patch, room, f"{command} {step.agent} --diff"),
    )
    return page.encode() + b"\n"


def content_policy() -> str:
    """Return the content security policy of the page, which names the hashes of its style and script."""
    style, script = map(_csp_hash, _read_assets())
    return (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _read_assets() -> tuple[str, str]:
    return "".join(map(read_template, STYLES)), read_template("page.js")


def _csp_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def excerpt_diff(patch: str, room: int, command: str) -> DiffExcerpt:
    """Return a diff in at most about ``room`` characters; the middle of a longer one is left out.

    Args:
        patch: as git writes it.
        room: characters.
        command: prints all of it.
    """
    files = parse_diff(patch)
    lines: list[tuple[str, str]] = []
    for file in files:
        lines.append(("strong", file.path))
        for line in file.lines:
            if line.kind is not LineKind.HEAD or line.text.startswith(MODES):
                more = f"… ({len(line.text):,} characters)" if len(line.text) > LONGEST else ""
                lines.append((ELEMENTS.get(line.kind, ""), line.text[:LONGEST] + more))
    counts = len(files), sum(file.added for file in files), sum(file.removed for file in files)
    if sum(len(text) for _, text in lines) > room:
        head = _count_fitting(lines, room * 3 // 4)
        tail = _count_fitting(lines[head:][::-1], room // 4)
        cut = f"… {len(lines) - head - tail:,} lines left out; {command} prints them all …"
        lines = [*lines[:head], ("b", cut), *lines[len(lines) - tail :]]
    return DiffExcerpt(*counts, lines)


def _count_fitting(lines: Sequence[tuple[str, str]], room: int) -> int:
    for count, (_, text) in enumerate(lines):
        room -= len(text)
        if room < 0:
            return count
    return len(lines)
