"""The operator ``invent``: a model writes a new agent after seeing the archive's best and most different members.

Source: arXiv:2408.08435 (ADAS, Meta Agent Search). The archive is shown, two rounds of reflection follow, and a failing
draft is repaired in at most three rounds. Unlike there, a draft is a change of its parent's source, so that an agent
may be larger than one answer: files, replacements and removals. No agent works here, so the parent's quality as an
editor makes no difference.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from dgm.archive.snapshots import LINK, check_name, storable
from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault, UserError
from dgm.messages import Message, Request, Role
from dgm.meta.answers import Answer, Lines, Text, ask_shortened, ask_until_readable, join_lines, read_answer
from dgm.meta.contract import Contract, read_contract
from dgm.meta.evidence import fit_to_budget, plain
from dgm.meta.operators import OperatorContext
from dgm.meta.self_edit import describe_failure
from dgm.meta.task_words import TaskWords
from dgm.protocols import Brief, Member, Needs, Proposal, Workbench

SKELETON = (
    '{"thought": "...", "rationale": "one line", "files": {"path": "text"},'
    ' "edits": [{"path": "...", "old": "...", "new": "..."}], "removed": ["path"]}'
)
"""The form of an answer in words. ``files`` is a list in the schema, where an object cannot have paths as keys."""
_OUTPUT_CHARS = 3_000
"""Characters of a check's output that are shown."""
_QUOTED_CHARS = 80


class InvalidChange(ValueError):
    """The error for an answer that cannot be applied; the message is one line for the model."""


class FileText(Answer):
    """A new file, or the new text of one."""

    path: str
    text: Annotated[str, BeforeValidator(lambda value: join_lines(value, "\n"))]


class Edit(Answer):
    """A replacement of a text that occurs once."""

    path: str
    old: Lines
    new: Lines


def _list_files(value: object) -> object:
    """Return an object from path to text, or records whose text is called ``content``, as records of ``FileText``."""
    if isinstance(value, dict):
        return [{"path": path, "text": text} for path, text in value.items()]
    if isinstance(value, list):
        return [
            {"path": row.get("path"), "text": row["content"]}
            if isinstance(row, dict) and "content" in row
            else row
            for row in value
        ]
    return value or []


def _check_paths(files: tuple[FileText, ...]) -> tuple[FileText, ...]:
    if len({file.path for file in files}) != len(files):
        raise ValueError("has a path twice")
    return files


def _list_alone(value: object) -> object:
    """Return one item as a list of one, and nothing as an empty list."""
    return value if isinstance(value, list) else [value] if value else []


class Changes(Answer):
    """The changes of a source in one answer; there may be none."""

    thought: Text
    rationale: Annotated[Text, AfterValidator(lambda text: " ".join(text.split())[:200])]
    files: Annotated[tuple[FileText, ...], BeforeValidator(_list_files), AfterValidator(_check_paths)] = ()
    edits: Annotated[tuple[Edit, ...], BeforeValidator(_list_alone)] = ()
    removed: Annotated[tuple[str, ...], BeforeValidator(_list_alone)] = ()

    def __str__(self) -> str:
        return f"{len(self.files)} files, {len(self.edits)} edits, {len(self.removed)} removed"


def apply_changes(source: Snapshot, changes: Changes, contract: Contract) -> tuple[Snapshot, Sequence[str]]:
    """Return the source after the changes, and a note on each edit that is there already.

    Removals come first, then files, then edits in their order. An edit is there already if its new text stands in the
    file and its old text does not stand outside of it; it is not made again.

    Raises:
        InvalidChange: a path is invalid, may not be changed, or does not exist; or a text to replace does not occur
            exactly once.
    """
    files = dict(source)
    for path in changes.removed:
        _check_path(path, contract)
        if files.pop(path, None) is None:
            raise InvalidChange(f"there is no file {_quote(path)} to remove")
    for file in changes.files:
        _check_path(file.path, contract)
        before = files.get(file.path, Entry(b""))
        files[file.path] = Entry(file.text.encode(), Entry(b"").mode if before.mode == LINK else before.mode)
    notes = []
    for number, edit in enumerate(changes.edits, 1):
        _check_path(edit.path, contract)
        if not _apply_edit(files, edit, f"number {number} of 'edits'"):
            notes.append(f"number {number} of 'edits' was there already, in {_quote(edit.path)}")
    for path in sorted(files):
        parts = path.split("/")
        if any("/".join(parts[:n]) in files for n in range(1, len(parts))):
            raise InvalidChange(f"{_quote(path)} lies in a folder of which there is a file of the same name")
    return files, notes


def _apply_edit(files: dict[str, Entry], edit: Edit, which: str) -> bool:
    """Make an edit; return whether it was still to be made."""
    path, old, new = edit.path, edit.old, edit.new
    if path not in files or files[path].mode == LINK:
        raise InvalidChange(f"{which}: there is no file {_quote(path)}")
    try:
        text = files[path].data.decode()
    except UnicodeDecodeError as error:
        raise InvalidChange(f"{which}: {_quote(path)} is no text") from error
    is_new_there = old and old != new and new.strip() and new in text
    if is_new_there and old not in (text.replace(new, "\0") if old in new else text):
        return False
    times = text.count(old) if old else 0
    if times != 1:
        raise InvalidChange(
            f"{which}: its 'old' ({_quote(old)}) occurs {times} times in {_quote(path)}; it must occur once"
        )
    files[path] = Entry(text.replace(old, new).encode(), files[path].mode)
    return True


def _check_path(path: str, contract: Contract) -> None:
    try:
        check_name(path)
    except UserError as error:
        raise InvalidChange(f"{_quote(path)} is not the path of a file in the agent's folder") from error
    if not storable({path: Entry(b"")}):
        raise InvalidChange(f"{_quote(path)} is git's own; it cannot be part of an agent")
    if not contract.may_change(path):
        raise InvalidChange(f"{_quote(path)} is fixed; it may not be changed")


def _quote(text: str) -> str:
    return repr(text if len(text) <= _QUOTED_CHARS else text[:_QUOTED_CHARS] + "...")


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
                state = draft.trouble or "The draft stands as you wrote it."
                await draft.ask_next(prompts.fill(f"invent-reflect-{number}", {"state": state}))
            for _ in range(settings.debugging):
                trouble = draft.trouble
                if not trouble:
                    failure = describe_failure(await bench.check(draft.source), _OUTPUT_CHARS)
                    if not failure:
                        break
                    trouble = f"The draft does not pass its check, which {failure}"
                await draft.ask_next(prompts.fill("invent-debug", {"state": trouble}))
        except AgentFault as fault:
            if not draft.usable:
                raise
            draft.log.append(f"no more answers: {fault}")
        if not draft.usable:
            if not draft.trouble:
                raise AgentFault("unchanged", "the draft changes nothing in the parent's source")
            raise AgentFault("edit", f"no draft could be applied. {draft.trouble}")
        log = "\n".join(draft.log).encode("utf-8", "replace") + b"\n"
        return Proposal(draft.source, draft.rationale, log)

    def _opening(self, brief: Brief, contract: Contract, chars: int) -> str:
        parent = brief.parents[0]
        agents = [parent, *(member for member in brief.members if member.agent.id != parent.agent.id)]
        parts = [(f"agent {member.agent.id}'s source", _source(member, parent)) for member in agents]
        values = {
            **brief.facts,
            "members": "\n".join(map(_describe_member, agents)),
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

    async def ask_next(self, question: str) -> None:
        """Ask the next question, and apply the answer.

        Raises:
            AgentFault: stage ``answer``: there was no usable answer.
        """
        messages = [*self._messages, Message(Role.USER, question)]
        request = Request(tuple(messages), form=Changes.form())
        text, changes = await ask_until_readable(
            self._bench, request, self._read, self._retries, "improve", SKELETON
        )
        self._messages = [*messages, Message(Role.ASSISTANT, text)]
        notes: Sequence[str] = ()
        try:
            source, notes = apply_changes(self.source, changes, self.contract)
        except InvalidChange as error:
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
        changes = read_answer(Changes, text)
        written = (
            changes.rationale,
            *(file.text for file in changes.files),
            *(edit.new for edit in changes.edits),
        )
        self._tasks.check_general("\n".join(written), "the draft")
        return text, changes


def _describe_member(member: Member) -> str:
    about = f": {member.agent.rationale}" if member.agent.rationale else ""
    return (
        f"- agent {member.agent.id}: solved {member.own.resolved} of {member.own.n};"
        f" made by {member.agent.operator}{about}"
    )


def _source(member: Member, parent: Member) -> bytes:
    """Return the text files, each below its path; for agents other than the parent only those that differ."""
    files = {path: data for path, data in plain(member.source).items() if b"\0" not in data}
    same: Sequence[str] = []
    if member is not parent:
        original = plain(parent.source)
        same = [path for path, data in files.items() if original.get(path) == data]
    head = f"(as in agent {parent.agent.id}: {', '.join(same)})\n".encode() if same else b""
    return head + b"\n".join(
        f"--- {path}\n".encode() + data for path, data in files.items() if path not in same
    )
