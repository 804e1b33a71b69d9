"""The operator ``invent``: a model writes a new agent after seeing the archive's best and most different members.

Source: arXiv:2408.08435 (ADAS, Meta Agent Search). The archive is shown, two rounds of reflection follow, and a failing
draft is repaired in at most three rounds. Unlike there, a draft is a change of its parent's source, so that an agent
may be larger than one answer. A draft fails if the agent's own check fails. No agent works here, so the parent's
quality as an editor makes no difference.
"""

from collections.abc import Sequence

from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.messages import Message, Request, Role
from dgm.meta.answers import ask_shortened, ask_until_readable
from dgm.meta.context import OperatorContext
from dgm.meta.contract import Contract, read_contract
from dgm.meta.drafting import FORM, SKELETON, Changes, InvalidAnswer, apply_changes, read_changes
from dgm.meta.evidence import fit_to_budget, plain
from dgm.meta.generality import TaskWords
from dgm.protocols import Brief, Completed, Member, Needs, Proposal, Workbench

ROLE = "improve"
_SHOWN = 3_000
"""Characters of a check's output that are shown."""
_STANDS = "The draft stands as you wrote it."


class Invent:
    """An operator with one parent and one child that no agent of the archive wrote."""

    name = "invent"
    needs = Needs(archive=4)

    def __init__(self, making: OperatorContext) -> None:
        self.making = making

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Ask for a draft, have it reviewed and repaired, and propose the final source.

        Raises:
            AgentFault: stage ``answer``: there was no usable answer; ``edit``: none could be applied; ``unchanged``:
                the draft changes nothing.
            Infrastructure: the sandbox or the model failed.
        """
        prompts, settings = self.making.prompts, self.making.settings
        draft = _Draft(brief, prompts.fill("invent", {}), bench, settings.retries)
        await ask_shortened(
            lambda chars: self._opening(brief, draft.contract, chars),
            self.making.evidence.prompt_chars,
            draft.ask_next,
        )
        try:
            for number in range(1, settings.reflections + 1):
                await draft.ask_next(
                    prompts.fill(f"invent-reflect-{number}", {"state": draft.trouble or _STANDS})
                )
            for _ in range(settings.debugging):
                trouble = draft.trouble or _describe_failure(await bench.check(draft.source))
                if not trouble:
                    break
                await draft.ask_next(prompts.fill("invent-debug", {"state": trouble}))
        except AgentFault as fault:
            if not draft.usable:
                raise
            draft.log.append(f"no more answers: {fault}")
        if not draft.usable:
            if not draft.trouble:
                raise AgentFault("unchanged", "the draft changes nothing in the parent's source")
            raise AgentFault("edit", f"no draft could be applied. {draft.trouble}")
        return Proposal(
            draft.source, draft.rationale, "\n".join(draft.log).encode("utf-8", "replace") + b"\n"
        )

    def _opening(self, brief: Brief, contract: Contract, chars: int) -> str:
        parent = brief.parents[0]
        everyone = [parent, *(member for member in brief.members if member.agent.id != parent.agent.id)]
        parts = [(_title(member), _source(member, parent)) for member in everyone]
        values = {
            **brief.facts,
            "members": "\n".join(_line(member) for member in everyone),
            "parts": fit_to_budget(parts, chars),
            "fixed": ", ".join(f"`{pattern}`" for pattern in contract.protected),
            "check": " ".join(contract.check),
            "child_number": brief.child_number,
        }
        return self.making.prompts.fill("invent-draft", values)


class _Draft:
    """A conversation about a source, and the source that results from it.

    Attributes:
        trouble: why the last answer could not be applied; empty if it could.
        usable: whether an answer that changes something was applied.
    """

    def __init__(self, brief: Brief, system: str, bench: Workbench, retries: int) -> None:
        self.source: Snapshot = brief.parents[0].source
        self.contract = read_contract(self.source)
        self.rationale, self.trouble, self.usable = "", "", False
        self.log: list[str] = []
        self._messages = [Message(Role.SYSTEM, system)]
        self._bench, self._retries = bench, retries
        self._tasks = TaskWords.of(brief)

    async def ask_next(self, said: str) -> None:
        """Ask the next question, and apply the answer.

        Raises:
            AgentFault: stage ``answer``: there was no usable answer.
        """
        question = [*self._messages, Message(Role.USER, said)]
        text, changes = await ask_until_readable(
            self._bench, Request(tuple(question), form=FORM), self._read, self._retries, ROLE, SKELETON
        )
        self._messages = [*question, Message(Role.ASSISTANT, text)]
        notes: Sequence[str] = ()
        try:
            source, notes = apply_changes(self.source, changes, self.contract)
        except InvalidAnswer as error:
            self.trouble = f"Your last answer could not be applied, and changed nothing: {error}."
        else:
            self.trouble = ""
            changed = source != self.source
            self.usable |= changed
            self.rationale = changes.rationale if changed or not self.rationale else self.rationale
            self.source = source
        remarks = "".join(f" [{remark}]" for remark in (*notes, self.trouble) if remark)
        self.log.append(f"{changes}: {changes.rationale}{remarks}")

    def _read(self, text: str) -> tuple[str, Changes]:
        changes = read_changes(text)
        written = (changes.rationale, *changes.files.values(), *(edit["new"] for edit in changes.edits))
        self._tasks.check_general("\n".join(written), "the draft")
        return text, changes


def _describe_failure(done: Completed) -> str:
    """Return the message about a failed check; empty if it passes."""
    if not done.exit_code and not done.timed_out:
        return ""
    how = "does not end in time" if done.timed_out else f"exits {done.exit_code}"
    said = done.output.decode("utf-8", "replace").strip()[-_SHOWN:] or "(no output)"
    return f"The draft does not pass its check, which {how}:\n\n{said}"


def _title(member: Member) -> str:
    return f"agent {member.agent.id}'s source"


def _line(member: Member) -> str:
    made = f"made by {member.agent.operator}" + (
        f": {member.agent.rationale}" if member.agent.rationale else ""
    )
    return f"- agent {member.agent.id}: solved {member.own.resolved} of {member.own.n}; {made}"


def _source(member: Member, parent: Member) -> bytes:
    """Return the text files, each below its path; for agents other than the parent only those that differ."""
    files = {path: data for path, data in plain(member.source).items() if b"\0" not in data}
    same: Sequence[str] = []
    if member is not parent:
        own = plain(parent.source)
        same = [path for path, data in files.items() if own.get(path) == data]
    shown = [f"--- {path}\n".encode() + data for path, data in files.items() if path not in same]
    as_parent = f"(as in agent {parent.agent.id}: {', '.join(same)})\n".encode() if same else b""
    return as_parent + b"\n".join(shown)
