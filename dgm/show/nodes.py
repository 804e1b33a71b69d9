"""The engines or nodes of a search as lines."""

from collections.abc import Mapping, Sequence
from typing import Any

from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import count_text

SHOWN = 8
"""Maximum number of nodes that are listed; more are only counted."""
_PROBLEM_WIDTH = 100


def nodes_line(nodes: Sequence[Mapping[str, Any]]) -> Line:
    """Return the sum of all nodes.

    Args:
        nodes: as in ``dgm status --json``; at least one.
    """
    total = {name: sum(node[name] for node in nodes) for name in ("slots", "busy", "failures", "images")}
    away = sum(bool(node["problem"]) for node in nodes)
    said = f"{total['busy']:,} of {total['slots']:,} slots busy on {count_text(len(nodes), 'node')}"
    more = [
        f"{away:,} of them left alone" if away else "",
        count_text(total["failures"], "failure") if total["failures"] else "",
        f"{count_text(total['images'], 'image')} made or pulled" if total["images"] else "",
    ]
    return make_line(
        Span(f"{'nodes':<13}", Tone.KEY),
        said,
        Span("".join(f"; {each}" for each in more if each), Tone.WARN if away else Tone.DIM),
    )


def node_lines(nodes: Sequence[Mapping[str, Any]]) -> Sequence[Line]:
    """Return the sum of all nodes and a line for each, those with a problem first; none where there are none."""
    if not nodes:
        return []
    sorted_nodes = sorted(nodes, key=lambda node: (not node["problem"], -node["failures"]))
    lines = [nodes_line(nodes), *(_node_line(node) for node in sorted_nodes[:SHOWN])]
    if len(nodes) > SHOWN:
        lines.append(make_line(Span(f"{'':<13}", Tone.KEY), f"and {len(nodes) - SHOWN:,} more"))
    return lines


def _node_line(node: Mapping[str, Any]) -> Line:
    counts = [f"{node['opened']:,} opened"]
    if node["failures"]:
        counts.append(count_text(node["failures"], "failure"))
    if node["images"]:
        counts.append(count_text(node["images"], "image"))
    problem = f"; left alone: {one_line(node['problem'], _PROBLEM_WIDTH)}" if node["problem"] else ""
    return make_line(
        Span(f"{'':<13}", Tone.KEY),
        f"{one_line(node['name'], 40)}: {node['busy']} of {node['slots']} busy, ",
        Span(", ".join(counts), Tone.DIM),
        Span(problem, Tone.WARN),
    )
