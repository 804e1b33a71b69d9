"""The operator ``share``: a group of agents pools its evidence, and each member has a child that learns from all of it.

Source: arXiv:2602.04837 (Group-Evolving Agents). The policy chooses the group by performance and novelty
(``dgm.policies.operators.Groups``), and the log keeps it. A member's child is made as by ``compare``: a model writes an
issue about the member, which the member implements. Departure: there, one answer also covers tools and workflows apart.
"""

from collections.abc import Sequence

from dgm.domain import Verdict
from dgm.errors import AgentFault
from dgm.messages import Request
from dgm.meta.evidence import fit_to_budget
from dgm.meta.issue import IssueOperator, Part, case_parts, describe_last_change, source_part, verdict_table
from dgm.protocols import Brief, Case, Member, Needs, Proposal, Workbench

GROUP = 2
"""Members of a group, as in the paper."""


class Share(IssueOperator):
    """An operator with one parent and one child, which shows all that the parent's group did."""

    name = "share"
    needs = Needs(failures=1, group=GROUP)

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Ask for an issue about the parent in view of its group, then let the parent implement it.

        Raises:
            AgentFault: stage ``evidence``: no member was evaluated; or as ``Diagnose.make``.
        """
        if not brief.cases:
            raise AgentFault("evidence", "no member of the group has an evaluation that could be shared")
        agent = brief.parents[0].agent
        parts = share_parts(brief)
        values: dict[str, object] = {
            "agent": agent.id,
            "group": ", ".join(f"agent {number}" for number in brief.group or (agent.id,)),
            "last": describe_last_change(agent),
        }

        def build(chars: int) -> Request:
            return self._question("share", brief, {**values, "parts": fit_to_budget(parts, chars)})

        return await self._make(brief, bench, build)


def share_parts(brief: Brief) -> Sequence[Part]:
    """Return the group's verdicts, the partners' changes, each member's telling cases, and the parent's source."""
    me = brief.parents[0]
    partners = [member for member in brief.members if member.agent.id in brief.group]
    parts: list[Part] = [("who solves what", verdict_table(me, partners))]
    for member in partners:
        agent = member.agent
        words = f"{agent.rationale or 'not said'}\n".encode()
        parts.append((f"agent {agent.id}: what was changed and why", words))
        if member.change:
            parts.append((f"agent {agent.id}: the change", member.change))
    everybody = (me, *partners)
    for member in everybody:
        parts += _tell_cases(brief, member, everybody)
    return [*parts, source_part(me)]


def _tell_cases(brief: Brief, member: Member, group: Sequence[Member]) -> Sequence[Part]:
    """Return one failure and one success of a member, if possible on tasks where another one did otherwise."""
    whose = "the agent's " if member is group[0] else f"agent {member.agent.id}'s "
    parts: list[Part] = []
    for verdict, word in ((Verdict.UNRESOLVED, "failed"), (Verdict.RESOLVED, "solved")):
        contested: dict[bool, Case] = {}
        for case in brief.cases:
            if (case.evaluation.agent, case.evaluation.verdict) == (member.agent.id, verdict):
                others = {other.verdicts.get(case.evaluation.task) for other in group}
                contested.setdefault(bool(others - {verdict, None}), case)
        if telling := contested.get(True) or contested.get(False):
            parts += [part for part in case_parts(telling, f"{word}: {whose}") if part[1]]
    return parts
