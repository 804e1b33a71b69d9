"""The model's knowledge of a conversation: a fold over its messages, and nothing else.

Everything the model decides rests on a ``Conversation``. It holds only what is still visible in the request: the
model does not know a result that the scaffold cut, dropped or never produced.

* ``conversation.system``, ``.problem`` (the first user message), ``.notes`` (later user messages);
* ``conversation.toolbox``: the roles of the tools offered (``capabilities``), ``.guidelines``: concepts recognised
  in the system text;
* ``conversation.steps``: each call of the model with its move and its result, oldest first;
* ``conversation.files[path]``: a ``FileView``: the lines seen so far, in their *present* state (successful edits
  are applied), ``.complete``, ``.text``, ``.unseen()``;
* ``conversation.listing``: paths of files, ``.child_number`` (``improve`` jobs), ``.said``: the model's replies.

A decision is made by ``decide_edit(conversation) -> Decision`` (``editor``, for an agent's own source) or by
``solver.decide(conversation)``; ``view_fully(conversation, path)`` returns the next window that must still be seen,
or ``None`` when the whole file is known.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dgm.messages import Message, Request, Role
from dgm.offline import results
from dgm.offline.capabilities import Toolbox, ToolRole, recognise
from dgm.offline.files import FileView
from dgm.offline.guidelines import Concept, recognise_concepts
from dgm.offline.moves import Edit, Move, RunCommand, View
from dgm.offline.performing import move_of, understand

NO_MARK = "0" * 11
"""Mark of an edit that only reverts another."""
_MARK = re.compile(r"#c([0-9a-f]{11})\b")
_CHILD = re.compile(r"\bchild(?:'s)?(?: number)?\s*[:#=]?\s*(\d{1,6})\b", re.I)
_WHERE = re.compile(r"\brepository is (?:in|at) (/[\w./-]{1,200}?)\.?(?=\s|$)")


@dataclass(frozen=True, slots=True)
class ConversationStep:
    """One call of the model that the scaffold kept, and its result.

    Attributes:
        said: the model's text with the call.
        role: the role of the tool.
        move: the call understood as a move; ``None`` for one that cannot be understood any more.
        result: the tool's answer and the user messages right after it; ``None`` if the scaffold shows neither.
        done: whether the move is an ``Edit`` that succeeded.
        number: position of the edit among the edits of its reply, from 0.
    """

    said: str
    role: ToolRole
    move: Move | None
    result: str | None
    done: bool = False
    number: int = 0

    @property
    def mark(self) -> str | None:
        """The short hash of the candidate that the model was trying; ``None`` if the reply names none."""
        found = _MARK.findall(self.said)
        return found[self.number] if self.number < len(found) else None


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything that one request shows (see ``fold``)."""

    system: str
    problem: str
    notes: str
    toolbox: Toolbox
    guidelines: frozenset[Concept]
    steps: tuple[ConversationStep, ...]
    files: Mapping[str, FileView]
    listing: tuple[str, ...]
    said: tuple[str, ...] = ()
    """The text of each of the model's replies."""
    hot: bool = False
    """Whether the request asks for a temperature above 0."""

    @property
    def child_number(self) -> int:
        """The number of the child that an ``improve`` job asks for; 0 if the problem does not say."""
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
        """Marks of candidates named anywhere but in tool results, such as in a retry's notes."""
        texts = (self.system, self.problem, self.notes)
        told = {mark for text in texts for mark in _MARK.findall(text)}
        # The scaffold may have left out all but the first candidate of a reply: the others are still to be tried.
        told |= {mark for text in self.said for mark in _MARK.findall(text)[:1]}
        made = {step.mark for step in self.steps if isinstance(step.move, Edit) and step.result is not None}
        return frozenset(told | {mark for mark in made if mark})

    def has(self, concept: Concept) -> bool:
        """Return whether the system text asks for this concept."""
        return concept in self.guidelines

    def view(self, path: str) -> FileView:
        """Return the known lines of a file; an empty view for a file never seen."""
        return self.files.get(path) or FileView(path)

    def ran(self, command: str) -> ConversationStep | None:
        """Return the last run of exactly this command whose result is shown; ``None`` if there is none."""
        return next(
            (s for s in reversed(self.steps) if s.move == RunCommand(command) and s.result is not None), None
        )

    def count_views(self, path: str) -> int:
        """Return the number of answered views of a file."""
        return sum(
            isinstance(s.move, View) and s.move.path == path and s.result is not None for s in self.steps
        )


def view_fully(conversation: Conversation, path: str) -> View | None:
    """Return the next window needed to know all of a file, or ``None`` if all of it is known.

    The first view asks for everything. Later views ask for missing lines, in pieces as large as the scaffold let
    through before. The result is also ``None`` if three views in a row showed nothing new.
    """
    view = conversation.view(path)
    gap = view.first_gap()
    if gap is None or (view.total is None and conversation.count_views(path) >= 3):
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
    """Return everything that a request shows, as a conversation."""
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
        guidelines=recognise_concepts(system),
        steps=steps,
        files=files,
        listing=_listing(problem, steps),
        said=tuple(message.text for message in turns if message.role is Role.ASSISTANT),
        hot=bool(request.temperature),
    )


def _steps(
    turns: Sequence[Message], toolbox: Toolbox, files: dict[str, FileView]
) -> Iterator[ConversationStep]:
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
            yield ConversationStep(message.text, role, move, result, done, edits)
            edits += isinstance(move, Edit)


def _answers(turns: Sequence[Message]) -> tuple[dict[str, str], str]:
    """Return tool results by call up to the model's next turn, and the user messages among them."""
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
    """Apply one result to the known files; return whether it was an edit that succeeded."""
    if isinstance(move, View):
        view = files.setdefault(move.path, FileView(move.path))
        if role is ToolRole.SHELL:
            shown, total = results.parse_view(result, move.first, move.last)
        else:
            shown, total = results.parse_viewer(result, move.first)
        view.see(shown, total)
        return False
    if not isinstance(move, Edit) or results.is_refusal(result):
        return False
    view = files.setdefault(move.path, FileView(move.path))
    if role is ToolRole.LINES and "first" in slots and "last" in slots:
        new = move.new.split("\n")
        view.splice(int(slots["first"]), int(slots["last"]), new[:-1] if new[-1] == "" else new)
    else:
        view.replace(move.old, move.new)
    return True


def _listing(problem: str, steps: Sequence[ConversationStep]) -> tuple[str, ...]:
    """Return the paths of a listing in the first message (three or more) or from the model's own command."""
    told = results.parse_paths(problem)
    paths = list(told) if len(told) >= 3 else []
    for step in steps:
        if isinstance(step.move, RunCommand) and step.move.command.startswith("find ") and step.result:
            paths += results.parse_paths(step.result)
    return tuple(dict.fromkeys(paths))


def _largest_run(view: FileView) -> int:
    """Return the length of the longest stretch of known lines without a hole."""
    best = length = 0
    previous = -1
    for number in sorted(view.lines):
        length = length + 1 if number == previous + 1 else 1
        best, previous = max(best, length), number
    return best
