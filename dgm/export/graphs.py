"""The tree as GraphML, GEXF or DOT; the same run gives the same bytes with the same networkx.

Text that others wrote is neutralised: with one control character in a rationale no XML reader would take the file.
"""

import io
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgm.analysis.best import best_of
from dgm.analysis.graph import to_networkx
from dgm.archive.events import AgentBorn
from dgm.archive.identity import identity_of
from dgm.archive.run import Run
from dgm.errors import UserError
from dgm.export.fresh import check_suffix, new_file
from dgm.show.safe import neutralise

if TYPE_CHECKING:
    from networkx import DiGraph

_BIRTHS = "SELECT seq, at, kind, action, body FROM events WHERE kind = 'agent_born' AND seq <= ? ORDER BY seq"
_NO_XML = re.compile("[\ufffe\uffff]")
"""Characters that XML cannot hold, beside the control characters that ``neutralise`` replaces."""


def write_tree(run: Run, target: Path) -> int:
    """Write the run's agents into a new file, in the format of its suffix; return the number of agents.

    Raises:
        UserError: the run has no agent, the name ends with no known format, or the file cannot be made.
    """
    write = _FORMATS[check_suffix(target, tuple(_FORMATS), "the tree")]
    if not run.tree.agents:
        raise UserError(f"run {run.name} has no agent yet; wait until its seed is born")
    graph = build_graph(run)
    with new_file(target) as draft:
        draft.write_bytes(write(graph, run))
    return len(graph)


def build_graph(run: Run) -> "DiGraph[int]":
    """Return ``to_networkx`` with the best agent, each node's label, birth, aim and decision, and safe text.

    A node's attributes: ``label``, ``commit``, ``operator``, ``aim``, ``rationale``, ``decided`` (who let it be born,
    where that was asked), ``born_at`` (Unix time), ``depth``, ``children``, ``own_resolved``, ``own_unresolved``,
    ``clade_resolved``, ``clade_unresolved``, ``best``, ``lineage``. An empty text is left out. The graph has ``run``,
    ``policy`` and ``seed``.
    """
    tree = run.tree
    graph = to_networkx(tree, best_of(run))
    for name, value in identity_of(run).record().items():
        graph.graph[name] = _safe_text(value) if isinstance(value, str) else value
    for born, at in _read_births(run):
        node = graph.nodes[int(born.id)]
        own = tree.own(born.id)
        node["label"] = f"{born.id} {born.operator} {own.resolved}/{own.n}"
        node["children"] = len(tree.children(born.id))
        node["born_at"] = at
        node["decided"], node["aim"] = born.decided, tree.aim(born.id)
    for _, node in graph.nodes(data=True):
        for name, value in list(node.items()):
            if isinstance(value, str):
                node[name] = _safe_text(value)
                if not value:
                    del node[name]
    return graph


def _read_births(run: Run) -> Iterator[tuple[AgentBorn, float]]:
    for row in run.store.query(_BIRTHS, (run.tree.seq,)):
        recorded = run.store.decoded((row[0], row[1], row[2], row[3], row[4]))
        if isinstance(recorded.event, AgentBorn):
            yield recorded.event, recorded.at


def _safe_text(text: str) -> str:
    return _NO_XML.sub("\ufffd", neutralise(text))


def _encode_graphml(graph: "DiGraph[int]", _run: Run) -> bytes:
    from networkx import write_graphml_xml

    buffer = io.BytesIO()
    # Not ``write_graphml``: where lxml is installed it uses another writer, with other bytes.
    write_graphml_xml(graph, buffer, named_key_ids=True)
    return buffer.getvalue()


def _encode_gexf(graph: "DiGraph[int]", run: Run) -> bytes:
    from networkx import write_gexf

    # The format has no attributes of a graph except its name, so each node carries them.
    graph.graph["name"] = _safe_text(str(identity_of(run)))
    for _, node in graph.nodes(data=True):
        node.update({name: graph.graph[name] for name in ("run", "policy", "seed")})
    buffer = io.BytesIO()
    write_gexf(graph, buffer)
    last = max((recorded.at for recorded in run.store.read(run.tree.seq - 1, 1)), default=0.0)
    # networkx writes today's date in the first lines.
    day = b'lastmodifieddate="%s"' % datetime.fromtimestamp(last, UTC).date().isoformat().encode()
    return re.sub(rb'lastmodifieddate="[^"]*"', day, buffer.getvalue(), count=1)


def _encode_dot(graph: "DiGraph[int]", _run: Run) -> bytes:
    """Return the graph in DOT: crossovers are diamonds, the best lineage is thick.

    The writer of networkx is not used, because it needs another package.
    """
    lines = ["digraph archive {", f"  graph [{_attribute_text(graph.graph)}];", "  node [shape=ellipse];"]
    for number, node in graph.nodes(data=True):
        drawn: dict[str, Any] = {}
        if graph.in_degree(number) != 1:
            drawn["shape"] = "diamond" if graph.in_degree(number) else "box"
        if node["lineage"]:
            drawn["penwidth"] = 3
        if node["best"]:
            drawn["peripheries"] = 2
        lines.append(f"  {number} [{_attribute_text({**node, **drawn})}];")
    for parent, child, edge in graph.edges(data=True):
        drawn = {"style": "dashed"} if edge["order"] else {}
        thick = graph.nodes[parent]["lineage"] and graph.nodes[child]["lineage"] and not edge["order"]
        drawn |= {"penwidth": 3} if thick else {}
        lines.append(f"  {parent} -> {child} [{_attribute_text({**edge, **drawn})}];")
    return "\n".join([*lines, "}", ""]).encode()


def _attribute_text(given: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_quote_value(value)}" for name, value in given.items())


def _quote_value(value: object) -> str:
    """Return a value as a quoted string of the DOT language, in which a backslash begins an escape."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", " ")
    return f'"{text}"'


_FORMATS: dict[str, Callable[["DiGraph[int]", Run], bytes]] = {
    ".graphml": _encode_graphml,
    ".gexf": _encode_gexf,
    ".dot": _encode_dot,
}
