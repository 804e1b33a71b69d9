"""The operator ``diagnose``: a model reads one failure and writes an issue about the agent, which implements it.

Source: arXiv:2505.22954 (the Darwin Gödel Machine), section 3 and its program, whose kinds of entry ``entries`` lists.
"""

from dgm.domain import Verdict
from dgm.errors import AgentFault
from dgm.messages import Message, Request, Role
from dgm.meta.context import OperatorContext
from dgm.meta.entries import ENTRIES, STOCHASTIC, UNRESOLVED
from dgm.meta.evidence import fit_to_budget
from dgm.meta.implementing import (
    FORM,
    Part,
    ask_for_issue,
    case_parts,
    describe_last_change,
    implement,
    source_part,
)
from dgm.protocols import Brief, Case, Needs, Proposal, Workbench

ROLE = "diagnose"


class Diagnose:
    """An operator with one parent and one child."""

    name = "diagnose"
    needs = Needs(failures=1, aims=ENTRIES)

    def __init__(self, making: OperatorContext) -> None:
        self.making = making

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Ask for an issue about the agent, then let the agent implement it.

        Raises:
            AgentFault: stage ``evidence``: the agent has no failure; stage ``answer``: there was no usable issue; or as
                ``bench.work`` raises.
            Infrastructure: the sandbox or a model failed.
        """
        own = [case for case in brief.cases if case.evaluation.agent == brief.parents[0].agent.id]
        failed = [case for case in own if case.evaluation.verdict is Verdict.UNRESOLVED]
        if not failed:
            raise AgentFault("evidence", "the parent has failed at nothing that could be diagnosed")
        issue = await ask_for_issue(
            lambda chars: self._question(brief, own, failed, chars),
            brief,
            bench,
            self.making,
            ROLE,
        )
        return await implement(issue, brief, bench, self.making)

    def _question(self, brief: Brief, own: list[Case], failed: list[Case], chars: int) -> Request:
        prompts, parent = self.making.prompts, brief.parents[0]
        entry = brief.aim if brief.aim in ENTRIES else UNRESOLVED
        about = next((case for case in failed if case.action == brief.case), failed[0])
        parts: list[Part] = [*case_parts(about)]
        if entry == STOCHASTIC:
            solved = [case for case in own if case.evaluation.verdict is Verdict.RESOLVED]
            parts += case_parts(solved[0], "for comparison: a solved task's ") if solved else []
        parts.append(source_part(parent.source))
        values = {
            **brief.facts,
            "last": describe_last_change(parent.agent),
            "entry": prompts.fill(f"diagnose-{entry}", brief.facts).strip(),
            "parts": fit_to_budget(parts, chars),
        }
        said = prompts.fill("diagnose-question", values)
        return Request(
            (Message(Role.SYSTEM, prompts.fill("diagnose", {})), Message(Role.USER, said)), form=FORM
        )
