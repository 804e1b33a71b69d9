"""The genealogy as GraphML; the same run gives the same bytes with the same networkx.

Text that agents wrote is neutralised: with one control character in a rationale no XML reader would take the file.
"""

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from dgm.analysis.agents import best_of, trace_lineage
from dgm.archive.events import AgentBorn
from dgm.archive.run import Run, identity_of
from dgm.archive.tree import Tree
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.exports.files import new_file
from dgm.render.safe import neutralise

if TYPE_CHECKING:
    from networkx import DiGraph

_NO_XML = re.compile("[\ufffe\uffff]")
"""Characters that XML cannot hold, beside the control characters that ``neutralise`` replaces."""


def write_graph(run: Run, target: Path) -> int:
    """Write the run's agents into a new ``.graphml`` file; return their number.

    Raises:
        UserError: the run has no agent, or the file cannot be made.
    """
    from networkx import write_graphml_xml

    if not run.tree.agents:
        raise UserError(f"run {run.name} has no agent yet; wait until its seed is born")
    graph, buffer = build_graph(run), io.BytesIO()
    # Not ``write_graphml``: where lxml is installed it uses another writer, with other bytes.
    write_graphml_xml(graph, buffer, named_key_ids=True)
    with new_file(target) as draft:
        draft.write_bytes(buffer.getvalue())
    return len(graph)


def build_graph(run: Run) -> "DiGraph[int]":
    """Return ``to_networkx`` with the best agent, each node's label, birth, aim and decision, and safe text.

    A node's attributes: ``label``, ``commit``, ``operator``, ``aim``, ``rationale``, ``decided`` (who approved the
    agent, where that was asked), ``born_at`` (Unix time), ``depth``, ``children``, ``own_resolved``,
    ``own_unresolved``, ``clade_resolved``, ``clade_unresolved``, ``best``, ``lineage``. An empty text is left out. The
    graph has ``run``, ``policy`` and ``seed``.
    """
    tree = run.tree
    graph = to_networkx(tree, best_of(run))
    graph.graph.update({name: _safe(value) for name, value in identity_of(run).record().items()})
    for born in run.store.select("kind = 'agent_born' AND seq <= ?", (tree.seq,)):
        if isinstance(event := born.event, AgentBorn):
            tally = tree.own(event.id)
            graph.nodes[int(event.id)].update(
                label=f"{event.id} {event.outcome.operator} {tally.resolved}/{tally.n}",
                children=len(tree.children(event.id)),
                born_at=born.at,
                decided=event.decided,
                aim=tree.aim(event.id),
            )
    for _, node in graph.nodes(data=True):
        values = {name: _safe(value) for name, value in node.items() if value != ""}
        node.clear()
        node.update(values)
    return graph


def to_networkx(tree: Tree, best: AgentId | None = None) -> "DiGraph[int]":
    """Return a graph with a node per agent and an edge from each parent to the child (``order`` 0: the lineage parent).

    Attributes are numbers, booleans and strings; the strings are unchanged from the agents.

    Args:
        tree: the agents.
        best: the agent marked as ``best``; the agents from the seed to it are marked as ``lineage``. None: no marks.
    """
    lineage = set() if best is None else {agent.id for agent in trace_lineage(tree, best)}
    graph = tree.graph.copy()
    for agent in tree.agents:
        own, clade = tree.own(agent.id), tree.clade(agent.id)
        graph.nodes[agent.id].update(
            commit=agent.commit,
            operator=agent.operator,
            rationale=agent.rationale,
            depth=tree.depth(agent.id),
            own_resolved=own.resolved,
            own_unresolved=own.unresolved,
            clade_resolved=clade.resolved,
            clade_unresolved=clade.unresolved,
            **({} if best is None else {"best": agent.id == best, "lineage": agent.id in lineage}),
        )
    return graph


def _safe(value: object) -> object:
    return _NO_XML.sub("\ufffd", neutralise(value)) if isinstance(value, str) else value
