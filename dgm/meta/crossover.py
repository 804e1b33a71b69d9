"""The operator ``crossover``: two parents of different lineages that solve different tasks become one program.

It starts with a three-way merge from their common ancestor; for parents of different roots, from the lines that their
files share, or not at all if these are few. If the merge has no conflict and passes the agent's own
check, no model is asked. Otherwise the first parent works on the merged source. Source of the idea that a language
model recombines programs: arXiv:2302.12170.
"""

import asyncio
from dataclasses import replace

from dgm.archive.repository import (
    Conflict,
    ConflictKind,
    MergeResult,
    find_common,
    find_unsettled,
    merge_snapshots,
    patch,
)
from dgm.domain import Entry, Prediction, Snapshot, Verdict
from dgm.errors import AgentFault
from dgm.meta.contract import read_contract
from dgm.meta.operators import OperatorContext
from dgm.meta.self_edit import describe_failure, improve_job, problem_values, propose_child
from dgm.meta.task_words import MAX_PREDICTIONS, promisable_tasks
from dgm.protocols import Brief, Member, Needs, Proposal, Workbench

FOLDER = "merged"
"""Folder of the evidence with each parent's changes since the ancestor."""
_OUTPUT_CHARS = 2_000
"""Characters of a check's output that are shown."""
RELATED = 0.5
"""Share of the larger source that lines in common must have, where no ancestor is known: else nothing is merged."""
_NO_ANCESTOR = (
    "The two have no ancestor: the merge kept the lines that both have, and added what only one has.\n\n"
)
_UNRELATED = (
    "The two have no ancestor and little in common, so nothing is merged yet. The repository holds the first one; the "
    "second one's source is in the folder `agents/{second}/source/` of the evidence. Take over from it what lets it "
    "solve what the first one does not."
)
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
            AgentFault: stage ``parents``: they are not two; ``conflict``: a conflict was left
                unresolved; or as ``bench`` raises.
        """
        if len(brief.parents) != 2:
            raise AgentFault("parents", f"a crossover has two parents; there are {len(brief.parents)}")
        first, second = (parent.source for parent in brief.parents)
        merged_from = ""
        if brief.ancestor is None:
            second = _keep_protected(first, second)
            common = await asyncio.to_thread(find_common, first, second)
            if _size(common) < RELATED * max(_size(first), _size(second)):
                open_work = _UNRELATED.format(second=brief.parents[1].agent.id)
                return await self._settle(brief, bench, MergeResult(first, ()), open_work)
            brief, merged_from = replace(brief, ancestor=common), _NO_ANCESTOR
        assert brief.ancestor is not None
        merged = await asyncio.to_thread(merge_snapshots, brief.ancestor, first, second)
        if merged.conflicts:
            lines = "\n".join(map(_describe_conflict, merged.conflicts))
            open_work = f"{merged_from}These places are open:\n{lines}"
            return await self._settle(brief, bench, merged, open_work)
        if merged.files in (first, second):
            # One parent is the other's ancestor, or both made the same changes: vetting reports it.
            return Proposal(merged.files, "nothing to merge")
        done = await bench.check(merged.files)
        if failure := describe_failure(done, _OUTPUT_CHARS):
            open_work = f"{merged_from}No lines are in conflict, but the merged agent's check {failure}"
            return await self._settle(brief, bench, merged, open_work)
        merge = " and ".join(map(_describe_parent, brief.parents))
        summary = " ".join(f"All that {merge} changed.".split())[:200]
        log = b"merged without a conflict\n" + done.output
        return Proposal(merged.files, summary, log, predictions=_predict(brief))

    async def _settle(self, brief: Brief, bench: Workbench, merged: MergeResult, open_work: str) -> Proposal:
        evidence, diffs = dict(brief.evidence), list[str]()
        if brief.ancestor is not None:
            for which, parent in zip(("first", "second"), brief.parents, strict=True):
                diff = await asyncio.to_thread(patch, brief.ancestor, parent.source)
                evidence[f"{FOLDER}/{which}-parent.diff"] = Entry(diff)
            names = f"`{FOLDER}/first-parent.diff`, `{FOLDER}/second-parent.diff`"
            diffs.append(f"- {names}: all that each of them changed")
        brief = replace(brief, evidence=evidence)
        first, second = (parent.agent.rationale or "nothing is said" for parent in brief.parents)
        values = {**problem_values(brief, diffs), "first": first, "second": second, "open": open_work}
        problem = self.making.prompts.fill("crossover", values)
        work = await bench.work(improve_job(self.making, brief, problem, merged.files))
        if unsettled := find_unsettled(merged.conflicts, work.workspace):
            raise AgentFault("conflict", f"places in conflict were left: {', '.join(unsettled[:5])}")
        return propose_child(brief, work)


def _predict(brief: Brief) -> tuple[Prediction, ...]:
    """Return the promise of every merge: what only the second parent solves, the child solves too."""
    second = brief.parents[1]
    tasks = [task for task in promisable_tasks(brief) if second.verdicts.get(task) is Verdict.RESOLVED]
    return tuple(Prediction(task, f"agent {second.agent.id} solves it") for task in tasks[:MAX_PREDICTIONS])


def _keep_protected(first: Snapshot, second: Snapshot) -> Snapshot:
    """Return the second source with the first one's files where a child of the first may not differ from it."""
    may_change = read_contract(first).may_change
    return {
        **{path: entry for path, entry in second.items() if may_change(path)},
        **{path: entry for path, entry in first.items() if not may_change(path)},
    }


def _size(files: Snapshot) -> int:
    return sum(len(entry.data) for entry in files.values())


def _describe_conflict(conflict: Conflict) -> str:
    line = f"- `{conflict.path}`: {_MEANS[conflict.clash]}"
    if conflict.clash is not ConflictKind.LINES:
        return line
    begins, _, _, ends = (marker.decode() for marker in conflict.markers)
    places = "1 place" if conflict.places == 1 else f"{conflict.places} places"
    return f"{line}, in {places} between lines `{begins}` and `{ends}`; none of these lines may be left"


def _describe_parent(parent: Member) -> str:
    about = f" ({parent.agent.rationale[:80]})" if parent.agent.rationale else ""
    return f"agent {parent.agent.id}{about}"
