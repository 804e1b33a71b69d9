"""What a conversation lets the model know: the fold over its messages, and nothing else.

Everything the model decides rests on a ``Conversation``. It holds only what is still visible in the request: a
result that the scaffold cut, dropped or never produced is knowledge that the model does not have.

* ``conversation.system``, ``.problem`` (the first user message), ``.notes`` (what users said later);
* ``conversation.toolbox``: the roles of the tools offered (``capabilities``), ``.guidelines``: concepts recognised
  in the system text;
* ``conversation.steps``: each call of the model with the move that it was and its result, oldest first;
* ``conversation.files[path]``: a ``FileView``: the lines seen so far, as they are *now* (edits that succeeded are
  folded in), ``.complete``, ``.text``, ``.unseen()``;
* ``conversation.listing``: paths of files, ``.child_number`` (``improve`` jobs), ``.said``: all that the model said.

A decision is made by ``decide_edit(conversation) -> Decision`` (``editor``, for an agent's own source) or by
``solver.decide(conversation)``; ``view_fully(conversation, path)`` gives the next window that must still be seen,
or ``None`` when the whole file is known.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dgm.messages import Message, Request, Role
from dgm.offline import results
from dgm.offline.capabilities import Toolbox, ToolRole, recognise
from dgm.offline.files import FileView
from dgm.offline.guidelines import Concept, recognised
from dgm.offline.moves import Edit, Move, Run, View
from dgm.offline.performing import move_of, understand

NO_MARK = "0" * 11
"""Stands for an edit that only takes another back."""
_MARK = re.compile(r"#c([0-9a-f]{11})\b")
_CHILD = re.compile(r"\bchild(?:'s)?(?: number)?\s*[:#=]?\s*(\d{1,6})\b", re.I)
_WHERE = re.compile(r"\brepository is (?:in|at) (/[\w./-]{1,200}?)\.?(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the model that the scaffold kept, and what came of it.

    Attributes:
        said: what the model said with the call.
        role: the role of the tool.
        move: the call understood as a move; ``None`` for one that makes no sense any more.
        result: what the tool answered, and what users said right after; ``None`` where the scaffold shows neither.
        done: an ``Edit`` that succeeded.
        number: which of the edits of its reply it is, from 0.
    """

    said: str
    role: ToolRole
    move: Move | None
    result: str | None
    done: bool = False
    number: int = 0

    @property
    def mark(self) -> str | None:
        """The short hash of the candidate that the model was trying."""
        found = _MARK.findall(self.said)
        return found[self.number] if self.number < len(found) else None


@dataclass(frozen=True, slots=True)
class Conversation:
    """The fold of one request."""

    system: str
    problem: str
    notes: str
    toolbox: Toolbox
    guidelines: frozenset[Concept]
    steps: tuple[Step, ...]
    files: Mapping[str, FileView]
    listing: tuple[str, ...]
    said: tuple[str, ...] = ()
    """The text of each of the model's replies."""
    hot: bool = False
    """A temperature above 0 was asked for."""

    @property
    def child_number(self) -> int:
        """Which child of its parent an ``improve`` job asks for; 0 where the problem does not say."""
        found = _CHILD.search(self.problem)
        return int(found[1]) if found else 0

    @property
    def improving(self) -> bool:
        """Whether the repository is an agent's own source."""
        own = re.search(
            r"\b(source|code)\b.{0,40}\b(coding )?agent\b.{0,60}\b(your|own)\b", self.system, re.S
        )
        return bool(own) or "agent.toml" in self.listing

    @property
    def root(self) -> str:
        """The repository's absolute path as the problem states it, or an empty text."""
        found = _WHERE.search(self.problem)
        return found[1].rstrip("/") if found else ""

    @property
    def tried(self) -> frozenset[str]:
        """Marks of candidates named anywhere that is not a tool's result, such as a retry's notes."""
        texts = (self.system, self.problem, self.notes)
        told = {mark for text in texts for mark in _MARK.findall(text)}
        # Of several candidates in a reply those that the scaffold left out are still to be tried.
        told |= {mark for text in self.said for mark in _MARK.findall(text)[:1]}
        made = {step.mark for step in self.steps if isinstance(step.move, Edit) and step.result is not None}
        return frozenset(told | {mark for mark in made if mark})

    def has(self, concept: Concept) -> bool:
        """Whether the system text asks for this."""
        return concept in self.guidelines

    def view(self, path: str) -> FileView:
        """What is known of a file; an empty view for one never seen."""
        return self.files.get(path) or FileView(path)

    def ran(self, command: str) -> Step | None:
        """The last shown run of exactly this command."""
        return next(
            (s for s in reversed(self.steps) if s.move == Run(command) and s.result is not None), None
        )

    def viewed(self, path: str) -> int:
        """How many views of a file were answered."""
        return sum(
            isinstance(s.move, View) and s.move.path == path and s.result is not None for s in self.steps
        )


def view_fully(conversation: Conversation, path: str) -> View | None:
    """The next window of a file that must be seen to know all of it, or ``None`` when all of it is known.

    The first view asks for everything; later ones ask for what was missing, in pieces as large as the scaffold let
    through before. ``None`` also where three views in a row brought nothing new.
    """
    view = conversation.view(path)
    gap = view.unseen()
    if gap is None or (view.total is None and conversation.viewed(path) >= 3):
        return None
    windows = [
        step.move for step in conversation.steps if isinstance(step.move, View) and step.move.path == path
    ]
    if not windows:
        return View(path)
    first, last = gap
    largest = max(20, _largest_run(view))
    if len(windows) >= 3 and windows[-1].first == windows[-2].first == windows[-3].first:
        return None
    return View(path, first, min(last or first + largest - 1, first + largest - 1))


def fold(request: Request) -> Conversation:
    """Everything that a request shows."""
    toolbox = recognise(request.tools)
    system = "\n".join(message.text for message in request.messages if message.role is Role.SYSTEM)
    turns = [message for message in request.messages if message.role is not Role.SYSTEM]
    opening: list[str] = []
    while turns and turns[0].role is Role.USER:
        opening.append(turns.pop(0).text)
    problem = "\n".join(opening)
    files: dict[str, FileView] = {}
    steps = tuple(_steps(turns, toolbox, files))
    later = [message.text for message in turns if message.role is Role.USER]
    return Conversation(
        system=system,
        problem=problem,
        notes="\n".join(later),
        toolbox=toolbox,
        guidelines=recognised(system),
        steps=steps,
        files=files,
        listing=_listing(problem, steps),
        said=tuple(message.text for message in turns if message.role is Role.ASSISTANT),
        hot=bool(request.temperature),
    )


def _steps(turns: Sequence[Message], toolbox: Toolbox, files: dict[str, FileView]) -> Iterator[Step]:
    for index, message in enumerate(turns):
        if message.role is not Role.ASSISTANT:
            continue
        answers, after = _answers(turns[index + 1 :])
        edits = 0
        for number, call in enumerate(message.calls):
            known = understand(call, toolbox)
            if known is None:
                continue
            role, slots = known
            move = move_of(role, slots, files)
            result = answers.get(call.id)
            if after and number == len(message.calls) - 1:
                result = (result or "") + "\n" + after
            done = result is not None and _take_in(role, move, slots, result, files)
            yield Step(message.text, role, move, result, done, edits)
            edits += isinstance(move, Edit)


def _answers(turns: Sequence[Message]) -> tuple[dict[str, str], str]:
    """Tool results up to the model's next turn by call, and what users said there."""
    answers: dict[str, str] = {}
    after: list[str] = []
    for message in turns:
        if message.role is Role.ASSISTANT:
            break
        if message.role is Role.TOOL:
            answers.setdefault(message.call_id, message.text)
        else:
            after.append(message.text)
    return answers, "\n".join(after)


def _take_in(
    role: ToolRole, move: Move | None, slots: Mapping[str, str], result: str, files: dict[str, FileView]
) -> bool:
    """Folds one result into what is known of the files; tells whether it was an edit that succeeded."""
    if isinstance(move, View):
        view = files.setdefault(move.path, FileView(move.path))
        if role is ToolRole.SHELL:
            shown, total = results.numbered(result, move.first, move.last)
        else:
            shown, total = results.from_viewer(result, move.first)
        view.see(shown, total)
        return False
    if not isinstance(move, Edit) or results.refused(result):
        return False
    view = files.setdefault(move.path, FileView(move.path))
    if role is ToolRole.LINES and "first" in slots and "last" in slots:
        new = move.new.split("\n")
        view.splice(int(slots["first"]), int(slots["last"]), new[:-1] if new[-1] == "" else new)
    else:
        view.replace(move.old, move.new)
    return True


def _listing(problem: str, steps: Sequence[Step]) -> tuple[str, ...]:
    """Paths that a listing showed: in the first message (three or more), or by the model's own command."""
    told = results.listed(problem)
    paths = list(told) if len(told) >= 3 else []
    for step in steps:
        if isinstance(step.move, Run) and step.move.command.startswith("find ") and step.result:
            paths += results.listed(step.result)
    return tuple(dict.fromkeys(paths))


def _largest_run(view: FileView) -> int:
    """The longest stretch of lines known without a hole."""
    best = length = 0
    previous = -1
    for number in sorted(view.lines):
        length = length + 1 if number == previous + 1 else 1
        best, previous = max(best, length), number
    return best
