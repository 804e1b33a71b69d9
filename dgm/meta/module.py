"""The operator ``module``: the parent changes one named part of itself, and everything else stays the same.

Source of the idea of searching module by module: arXiv:2410.06153. ``parts`` defines the parts and the changes of them.
"""

from collections.abc import Sequence

from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.messages import Message
from dgm.meta.context import OperatorContext
from dgm.meta.contract import PARTS, Contract, read_contract
from dgm.meta.generality import TaskWords
from dgm.meta.parts import SourcePlace, find_frozen_changes, places
from dgm.meta.self_edit import edit_source, problem_values, rationale
from dgm.meta.statements import find_statement
from dgm.protocols import Brief, Needs, Proposal, Workbench

MEANINGS = {
    "loop": "how it asks the model and carries out what the model wants, again and again",
    "tools": "what the model can call, and how that is run",
    "context": "what the model is shown of what tools print, and how much",
    "prompts": "what the model is told before it begins",
    "memory": "what is kept of the conversation, and what is carried over",
    "completion": "when the work counts as finished, and what is checked then",
}
GENERAL = "General"
_STATED = 400
"""Maximum characters of a kept statement."""
_LISTED = 200
"""Maximum number of listed definitions."""


class Module:
    """An operator with one parent, one part and one child."""

    name = "module"
    needs = Needs(aims=PARTS)

    def __init__(self, making: OperatorContext) -> None:
        self.making = making

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Let the parent edit one part of its own source.

        Raises:
            AgentFault: stage ``part``: it has no such part; ``protected``: another part was changed; ``statement``: the
                model does not say why the change is general, or names a task; or as ``bench`` raises.
        """
        source = brief.parents[0].source
        contract = read_contract(source)
        part = brief.aim or PARTS[brief.child_number % len(PARTS)]
        may = _editable_places(source, part, contract)
        problem = self._problem(brief, part, may)
        work = await edit_source(self.making, brief, bench, problem)
        proposal = Proposal(
            work.workspace,
            rationale(work.conversation),
            work.completed.output,
            read_statement(work.conversation),
        )
        if work.workspace != source:
            _check(proposal, source, part, contract)
            _check_statement(proposal.stated, brief)
        return proposal

    def _problem(self, brief: Brief, part: str, may: Sequence[SourcePlace]) -> str:
        values = {
            **problem_values(brief),
            "part": part,
            "meaning": MEANINGS[part],
            "places": "\n".join(f"- `{place}`" for place in may[:_LISTED]),
        }
        return self.making.prompts.fill("module", values)


def read_statement(conversation: Sequence[Message]) -> str:
    """Return the text after the last ``General:``, in one line of at most 400 characters; empty if there is none."""
    return find_statement(conversation, GENERAL)[:_STATED]


def _editable_places(source: Snapshot, part: str, contract: Contract) -> list[SourcePlace]:
    if part not in PARTS:
        raise AgentFault("part", f"there is no part {part!r} of a scaffold; there are {', '.join(PARTS)}")
    found = sorted(places(source, part, contract.parts))
    may = [place for place in found if contract.may_change(place.path)]
    if not may:
        raise AgentFault("part", f"nothing in the parent's source belongs to the part {part!r}")
    return may


def _check(proposal: Proposal, source: Snapshot, part: str, contract: Contract) -> None:
    foreign = find_frozen_changes(source, proposal.source, part, contract.parts)
    if foreign:
        named = ", ".join(map(str, foreign[:5])) + (" ..." if len(foreign) > 5 else "")
        raise AgentFault("protected", f"changed what does not belong to the part {part!r}: {named}")


def _check_statement(stated: str, brief: Brief) -> None:
    if not stated:
        raise AgentFault("statement", f"not a word on why the change is general (no line with '{GENERAL}:')")
    named = TaskWords.of(brief).find_mention(stated)
    if named:
        raise AgentFault("statement", f"the change is not general: its statement names {named!r}, of a task")
