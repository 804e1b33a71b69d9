"""The operator ``crossover``: two parents of different lineages that solve different tasks become one program.

It starts with a three-way merge from their common ancestor. If the merge has no conflict and passes the agent's own
check, no model is asked. Otherwise the first parent works on the merged source. Source of the idea that a language
model recombines programs: arXiv:2302.12170.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from dgm.archive.merging import Conflict, ConflictKind, MergeResult, find_unsettled, merge_snapshots
from dgm.archive.repository import patch
from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault
from dgm.meta.context import OperatorContext
from dgm.meta.self_edit import improve_job, problem_values, rationale
from dgm.protocols import Brief, Completed, Needs, Proposal, Workbench

FOLDER = "merged"
"""Folder of the evidence with each parent's changes since the ancestor."""
_SHOWN = 2_000
"""Characters of a check's output that are shown."""
_MEANS = {
    ConflictKind.LINES: "both changed the same lines",
    ConflictKind.BINARY: "both changed it and it is no text; the first one's stands",
    ConflictKind.REMOVED: "one removed what the other changed; the first one's way was taken",
    ConflictKind.KIND: "both changed what kind of file it is; the first one's stands",
    ConflictKind.FOLDER: "a file of one stands where the other has a folder; the first one's stands",
}


class Crossover:
    """An operator with two parents and one child."""

    name = "crossover"
    needs = Needs(parents=2)

    def __init__(self, making: OperatorContext) -> None:
        self.making = making

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Merge the two parents, with the first one's help where they conflict.

        Raises:
            AgentFault: stage ``parents``: they are not two with an ancestor; ``conflict``: a conflict was left
                unresolved; or as ``bench`` raises.
        """
        if len(brief.parents) != 2 or brief.ancestor is None:
            raise AgentFault("parents", f"a crossover has two parents; there are {len(brief.parents)}")
        first, second = (parent.source for parent in brief.parents)
        merged = await asyncio.to_thread(merge_snapshots, brief.ancestor, first, second)
        if merged.conflicts:
            return await self._settled(brief, bench, merged, _list_conflicts(merged.conflicts))
        if merged.files in (first, second):
            # One parent is the other's ancestor, or both made the same changes: vetting reports it.
            return Proposal(merged.files, "nothing to merge")
        done = await bench.check(merged.files)
        if done.exit_code or done.timed_out:
            return await self._settled(brief, bench, merged, _describe_failure(done))
        return Proposal(merged.files, _merge_rationale(brief), b"merged without a conflict\n" + done.output)

    async def _settled(self, brief: Brief, bench: Workbench, merged: MergeResult, left: str) -> Proposal:
        diffs = await asyncio.to_thread(_parent_diffs, brief)
        brief = replace(brief, evidence={**brief.evidence, **diffs})
        job = improve_job(self.making, brief, self._problem(brief, left), merged.files)
        work = await bench.work(job)
        still = find_unsettled(merged.conflicts, work.workspace)
        if still:
            raise AgentFault("conflict", f"places in conflict were left: {', '.join(still[:5])}")
        return Proposal(work.workspace, rationale(work.conversation), work.completed.output)

    def _problem(self, brief: Brief, left: str) -> str:
        first, second = (parent.agent.rationale or "nothing is said" for parent in brief.parents)
        diffs = (
            f"- `{FOLDER}/first-parent.diff`, `{FOLDER}/second-parent.diff`: all that each of them changed"
        )
        values = {
            **problem_values(brief, [diffs]),
            "first": first,
            "second": second,
            "open": left,
        }
        return self.making.prompts.fill("crossover", values)


def _list_conflicts(conflicts: Sequence[Conflict]) -> str:
    return "These places are open:\n" + "\n".join(_describe_conflict(conflict) for conflict in conflicts)


def _describe_conflict(conflict: Conflict) -> str:
    line = f"- `{conflict.path}`: {_MEANS[conflict.clash]}"
    if conflict.clash is not ConflictKind.LINES:
        return line
    begins, _, _, ends = (marker.decode() for marker in conflict.markers)
    places = "1 place" if conflict.places == 1 else f"{conflict.places} places"
    return f"{line}, in {places} between lines `{begins}` and `{ends}`; none of these lines may be left"


def _describe_failure(done: Completed) -> str:
    said = done.output.decode("utf-8", "replace").strip()[-_SHOWN:]
    how = "does not end in time" if done.timed_out else f"exits {done.exit_code}"
    return f"No lines are in conflict, but the merged agent's check {how}:\n\n" + (said or "(no output)")


def _parent_diffs(brief: Brief) -> Snapshot:
    assert brief.ancestor is not None
    sides = zip(("first", "second"), brief.parents, strict=True)
    return {
        f"{FOLDER}/{which}-parent.diff": Entry(patch(brief.ancestor, parent.source))
        for which, parent in sides
    }


def _merge_rationale(brief: Brief) -> str:
    """Return the rationale of a merge without a model."""
    halves = [
        f"agent {parent.agent.id} ({parent.agent.rationale[:80]})"
        if parent.agent.rationale
        else f"agent {parent.agent.id}"
        for parent in brief.parents
    ]
    return " ".join(f"All that {' and '.join(halves)} changed.".split())[:200]
