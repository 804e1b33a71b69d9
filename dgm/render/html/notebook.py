"""Runs, trees, reports and tables as a notebook displays them: text as on the terminal, and figures as pictures.

There is no script and no style sheet, so that nothing leaks into the notebook. Colours are readable on light and dark.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

from rich.console import Console, RenderableType
from rich.terminal_theme import TerminalTheme

from dgm.render.html.figures import draw_comparison, draw_progress, draw_tree
from dgm.render.html.svg import Drawing, clean
from dgm.render.report_text import render_comparison, render_report
from dgm.render.safe import one_line
from dgm.render.text import render_agent, render_run
from dgm.views.agents import AgentRow, AgentView, TreeView
from dgm.views.comparison import ComparisonView
from dgm.views.report import ReportView
from dgm.views.run import RunView

WIDTH = 110
"""Cells of a line of text."""
AGENTS = 300
"""Maximum number of agents in a tree."""
ROWS, CELL = 20, 60
"""Maximum number of rows of a table, and of characters in a cell."""
_GREY = (128, 128, 128)
_MIDDLING = [
    _GREY,
    (205, 75, 60),
    (40, 140, 80),
    (160, 120, 20),
    (60, 120, 215),
    (165, 85, 175),
    (20, 135, 150),
    _GREY,
]
"""Black, red, green, yellow, blue, magenta, cyan and white, with a contrast of 3:1 to white and to black at least."""
_THEME = TerminalTheme(_GREY, _GREY, _MIDDLING, _MIDDLING)
_PRE = '<pre style="white-space:pre;overflow-x:auto;line-height:1.35">{code}</pre>'


def run_html(view: RunView) -> str:
    """Return the state of a run."""
    return _text_html(render_run(view))


def agent_html(view: AgentView) -> str:
    """Return an agent with its evaluations."""
    return _text_html(render_agent(view))


def tree_html(view: TreeView) -> str:
    """Return the picture of a tree: the best agent's line, and the agents whose clades have the most verdicts."""
    if not view.agents:
        return _text_html("no agent yet")
    line = _trace_line(view.agents, view.best)
    rows = sorted(view.agents, key=lambda row: (row.agent not in line, -row.clade.n, row.agent))[:AGENTS]
    left_out = len(view.agents) - len(rows)
    note = _text_html(f"{left_out} agents with few verdicts are not drawn") if left_out else ""
    return _picture(draw_tree(sorted(rows, key=lambda row: row.agent), line)) + note


def report_html(view: ReportView) -> str:
    """Return the report of a run with its progress over evaluations."""
    progress = draw_progress(view.curve, view.seed_agent.own, paid=bool(view.spend.usd))
    return _text_html(render_report(view)) + (_picture(progress["evaluations"]) if progress else "")


def comparison_html(view: ComparisonView) -> str:
    """Return a comparison of runs with their curves."""
    return _text_html(render_comparison(view)) + _picture(draw_comparison(view))


def table_html(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> str:
    """Return the first rows of a table, and how many there are."""
    head = "".join(f"<th>{_cell(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in islice(rows, ROWS)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    size = f"{len(rows)} rows, {len(columns)} columns"
    return f'<div style="overflow-x:auto;white-space:nowrap">{table}</div><p>{size}</p>'


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
    return escape(clean(one_line(text[: 4 * CELL], CELL)))


def _text_html(text: RenderableType) -> str:
    # In Jupyter rich would display what is printed.
    console = Console(
        record=True,
        file=io.StringIO(),
        width=WIDTH,
        force_terminal=True,
        force_jupyter=False,
        color_system="standard",
    )
    console.print(text)
    return clean(console.export_html(theme=_THEME, code_format=_PRE, inline_styles=True))


def _picture(drawing: Drawing) -> str:
    # As a picture of its own it has its own styles, and a paper that is light on a dark page too.
    data = base64.b64encode(drawing.file()).decode()
    style = f"width:{drawing.width:.0f}px;max-width:100%;border-radius:4px"
    return f'<img alt="{escape(drawing.title)}" style="{style}" src="data:image/svg+xml;base64,{data}">'


def _trace_line(rows: Sequence[AgentRow], best: int | None) -> Sequence[int]:
    agents: Mapping[int, AgentRow] = {row.agent: row for row in rows}
    line = [] if best is None else [best]
    while line and agents[line[-1]].parents:
        line.append(agents[line[-1]].parents[0])
    return line[::-1]
