"""The brief of an operator that makes a child, and its record: two traces of the evidence."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dgm.archive.journal import CallReader
from dgm.domain import ActionId, Digest, Evaluation, Snapshot, Tally
from dgm.meta.evidence import (
    EvidenceContents,
    begin_with_actions,
    count_problems,
    evidence_folder,
    folder,
    manifest,
    record_reading,
)
from dgm.protocols import Brief, Case, Member, ProgramEnd
from dgm.search.orders import ExpandOrder, ParentState
from dgm.worker.context import WorkerContext

SHOWN = ("patch", "failures", "log", "conversation", "prompts")
"""Traces of an evaluation that become evidence."""


@dataclass(frozen=True, slots=True)
class BriefBuilder:
    """The part of a worker that collects the chosen material of an expansion."""

    by: WorkerContext

    def brief(self, order: ExpandOrder) -> Brief:
        """Return the brief; it names agents as when the order was first given, also in a replay by another model.

        Raises:
            ArchiveCorrupt: a source or a trace is missing or damaged.
        """
        everyone = [self._member(standing) for standing in order.standings]
        among = len(order.parents)
        parents, shown = everyone[:among], everyone[among:]
        numbered = zip(order.action.evidence, order.evidence, strict=True)
        cases = [self._case(action, evaluation) for action, evaluation in numbered]
        own = [case for case in cases if case.evaluation.agent == parents[0].agent.id]
        return Brief(
            parents=parents,
            evidence=self._folder(EvidenceContents(parents, shown, cases), own),
            facts=count_problems(order.tally, own),
            child_number=order.child_number,
            members=shown,
            cases=cases,
            aim=order.action.aim,
            case=order.action.case,
            ancestor=self.by.run.repository.source(order.ancestor) if order.ancestor else None,
        )

    def shown(self, brief: Brief) -> Mapping[str, Digest]:
        """Record the contents of the evidence folder; nothing if there is none."""
        return {"evidence": self.by.keep_whole(manifest(brief.evidence))} if brief.evidence else {}

    def read(self, action: ActionId, brief: Brief, heard: Collection[int]) -> Mapping[str, Digest]:
        """Record which parts of the folder the expansion's models were shown; nothing if there is no folder.

        Args:
            action: the expansion.
            brief: of its operator.
            heard: numbers of the answered calls of its operator. Calls of an earlier try's vetting do not
                count; nor do requests that the provider refused.

        Raises:
            ArchiveCorrupt: a recorded request or reply is missing or damaged.
        """
        if not brief.evidence:
            return {}
        run = self.by.run
        reader = CallReader(run.store)
        exchanged = [reader.exchange(call) for call in run.store.calls(action) if call.number in heard]
        said = [request for request, reply in exchanged if not reply.error]
        return {"reading": self.by.keep_whole(record_reading(brief.evidence, brief.parents[0].source, said))}

    def _folder(self, about: EvidenceContents, own: list[Case]) -> Snapshot:
        settings = self.by.settings.evidence
        if settings.layout == 2:
            return evidence_folder(about, settings.folder_bytes)
        return folder(own) if own else {}

    def _member(self, standing: ParentState) -> Member:
        repository = self.by.run.repository
        first = {each.task: each.verdict for each in standing.evaluations if each.attempt == 0}
        return Member(
            agent=standing.agent,
            source=repository.source(standing.agent.commit),
            own=sum((each.tally for each in standing.evaluations), Tally()),
            verdicts=first,
            change=repository.diff(standing.before, standing.agent.commit) if standing.before else b"",
        )

    def _case(self, action: ActionId, evaluation: Evaluation) -> Case:
        kept = evaluation.cost.traces
        traces = {name: self.by.run.traces.get(kept[name]) if name in kept else b"" for name in SHOWN}
        if "prompts" in kept:
            traces["conversation"] = begin_with_actions(traces["conversation"])
        signs = ProgramEnd()
        if "circumstances" in kept:
            with self.by.run.traces.reading(kept["circumstances"]) as recorded:
                signs = ProgramEnd(**recorded)
        problem = self.by.benchmark.task(evaluation.task).prompt
        return Case(evaluation, problem, traces, signs, action)
