"""The brief of an operator that makes a child, and its record: a trace of the evidence."""

from collections.abc import Mapping
from dataclasses import dataclass

from dgm.domain import ActionId, Digest, Evaluation, Tally
from dgm.meta.evidence import begin_with_actions, count_problems, evidence_folder, manifest
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
            evidence=evidence_folder(parents, shown, cases, self.by.settings.evidence.folder_bytes),
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
