"""The operator ``hyper``: the parent improves itself in its own way, with the whole archive in view.

Source: arXiv:2603.19461 (Hyperagents): how an agent improves is part of its program, so it is inherited and can be
improved, too. In the paper a meta agent and a task agent share one program. Here one program does both kinds of jobs,
and two things in its source belong to its improve jobs alone: notes for its descendants, and the procedure that it is
asked to follow. ``Tree.clade_gain`` measures whether a clade gets better at improving itself.
"""

from dgm.archive.snapshots import LINK
from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.meta.contract import read_contract
from dgm.meta.evidence import BUDGET_FILE, TABLE_FILE, cut_middle
from dgm.meta.operators import OperatorContext
from dgm.meta.self_edit import edit_source, problem_values, propose_child
from dgm.protocols import Brief, Needs, Proposal, Workbench

NOTES = "notes/"
"""Folder of an agent's source with what its ancestors noted for it."""
PROCEDURE = f"{NOTES}improving.md"
"""The agent's own procedure for improve jobs; without this file, the prompt ``hyper-procedure`` is its procedure."""
NOTES_BYTES = 24_000
"""Maximum size of all notes; a child with more is stillborn."""
_PROCEDURE_BYTES = 8_000
"""Bytes of the procedure that are shown; a longer one is cut in its middle."""
_SHOWN = 30
"""Maximum number of agents whose source, change and failures are shown."""
_FILES = (
    f"- `{TABLE_FILE}`: a row for each agent of the search, the best first: tallies, gain per expansion, spend, change",
    f"- `{BUDGET_FILE}`: the limits of the search, and what is left of them",
)


class Hyper:
    """An operator with one parent and one child."""

    name = "hyper"
    needs = Needs(overview=_SHOWN)

    def __init__(self, making: OperatorContext) -> None:
        self.making = making

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Let the parent edit its own source, its notes and its way of improving.

        Raises:
            AgentFault: stage ``notes``: the child's notes are too long; or as ``edit_source``.
        """
        fill = self.making.prompts.fill
        source = brief.parents[0].source
        values = {
            **problem_values(brief, _FILES),
            "procedure": read_procedure(source) or fill("hyper-procedure", problem_values(brief)).strip(),
            "notes": "",
        }
        if read_contract(source).may_change(PROCEDURE):
            values["notes"] = fill("hyper-notes", {"size": _size_of_notes(source), "most": NOTES_BYTES})
        work = await edit_source(self.making, brief, bench, fill("hyper", values))
        size = _size_of_notes(work.workspace)
        if size > max(NOTES_BYTES, _size_of_notes(source)):
            raise AgentFault(
                "notes", f"{NOTES} has {size:,} bytes of notes; at most {NOTES_BYTES:,} are allowed"
            )
        return propose_child(brief, work)


def read_procedure(source: Snapshot) -> str:
    """Return the procedure that an agent has in its source; empty if it has none."""
    entry = source.get(PROCEDURE)
    if entry is None or entry.mode == LINK:
        return ""
    return cut_middle(entry.data, _PROCEDURE_BYTES).decode("utf-8", "replace").strip()


def _size_of_notes(source: Snapshot) -> int:
    return sum(len(entry.data) for path, entry in source.items() if path.startswith(NOTES))
