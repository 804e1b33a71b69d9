"""How the model reads an agent's source: commands that show many files at once, and their parsed output.

A scaffold may cut the output anywhere. Only lines whose neighbours were shown too are believed. Missing lines are
asked for again, so reading takes as many steps as the scaffold's limit makes necessary.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote

from dgm.offline.knowledge import Conversation
from dgm.offline.moves import RunCommand

LIST = "find . -name '*.py' -not -path '*/.*' | sort"
OVERVIEW = f"{LIST}; for f in $({LIST}); do echo \"== $f\"; grep -n '' $f; done; echo '== end'"

_SHOW = re.compile(r"echo '== ([^']+)'; grep -n '' (?:\S+|'[^']+')(?: \| sed -n '(\d+),(\d+|\$)p')?")
_HEADER = re.compile(r"== (?:\./)?(\S.*)")
_NUMBERED = re.compile(r"(\d{1,6}):(.*)")
_PATH = re.compile(r"^(?:\./)?([\w.@+-][\w.@+/-]*\.py)$", re.MULTILINE)


Gap = tuple[int, int]
"""First and last line of a wanted stretch; 0 for the end of the file."""


@dataclass(slots=True)
class ShownFile:
    """The shown lines of one file by number, and the number of the last one once its end was seen."""

    lines: dict[int, str] = field(default_factory=dict)
    total: int | None = None

    @property
    def gap(self) -> Gap | None:
        """The first lines that are not known; ``None`` if all are."""
        first = 1
        while first in self.lines:
            first += 1
        if self.total is not None and first > self.total:
            return None
        return first, min((number - 1 for number in self.lines if number > first), default=0)

    @property
    def text(self) -> str:
        """All known lines."""
        return "".join(self.lines[number] + "\n" for number in sorted(self.lines))


def show_command(wanted: Mapping[str, Gap]) -> RunCommand:
    """Return the command that shows parts of files, numbered."""
    parts = []
    for path, (first, last) in wanted.items():
        window = f" | sed -n '{first},{last or '$'}p'" if first > 1 or last else ""
        parts.append(f"echo '== {path}'; grep -n '' {quote(path)}{window}")
    return RunCommand("; ".join([*parts, "echo '== end'"]))


def read(conversation: Conversation, also: Sequence[str] = ()) -> dict[str, ShownFile]:
    """Return the lines shown so far of every Python file known to exist.

    Files in ``also`` are added once any Python file is known.
    """
    paths = [path for path in conversation.listing if path.endswith(".py")]
    found: dict[str, ShownFile] = {}
    for step in conversation.steps:
        if not isinstance(step.move, RunCommand) or not step.result:
            continue
        command = step.move.command
        if command in (LIST, OVERVIEW):
            before = step.result.partition("\n== ")[0]
            paths += _PATH.findall(before)
            _take_in(step.result, _PATH.findall(before), {}, found)
        elif command.startswith("echo '== "):
            asked = {
                m[1]: (int(m[2] or 1), int(m[3]) if m[3] and m[3] != "$" else 0)
                for m in _SHOW.finditer(command)
            }
            _take_in(step.result, list(asked), asked, found)
    # Before a listing was shown, ``also`` alone may be incomplete.
    names = dict.fromkeys((*paths, *also) if paths else ())
    return {path: found.get(path, ShownFile()) for path in sorted(names)}


def _gap(asked: re.Match[str]) -> Gap:
    return int(asked[2] or 1), int(asked[3]) if (asked[3] or "$") != "$" else 0


def find_gaps(files: Mapping[str, ShownFile]) -> dict[str, Gap]:
    """Return the next gap of each file that is not wholly known."""
    return {path: shown.gap for path, shown in files.items() if shown.gap is not None}


@dataclass(slots=True)
class _Stretch:
    """Consecutive numbered lines of an output."""

    rows: list[tuple[int, str]]
    after: str | None
    """The file whose header stands right before."""
    before: str | None = None
    """The header that stands right after."""


def _take_in(
    result: str, order: Sequence[str], asked: Mapping[str, Gap], found: dict[str, ShownFile]
) -> None:
    stretches = _stretches(result)
    for index, stretch in enumerate(stretches):
        path = stretch.after or _file_before_next(stretches[index:], order)
        if path is None or path not in order:
            continue
        shown, rows, (first, last) = (
            found.setdefault(path, ShownFile()),
            stretch.rows,
            asked.get(path, (1, 0)),
        )
        ended = rows[-1][0] if rows else first - 1
        if not stretch.after or (rows and rows[0][0] != first):
            rows = rows[1:]
        if stretch.before is None:
            rows = rows[:-1]
        elif not last or ended < last:
            shown.total = ended
        shown.lines.update(rows)


def _stretches(result: str) -> list[_Stretch]:
    found: list[_Stretch] = []
    current: _Stretch | None = None
    header: str | None = None
    for row in result.split("\n"):
        named, numbered = _HEADER.fullmatch(row), _NUMBERED.fullmatch(row)
        if numbered:
            number = int(numbered[1])
            if current is None or current.rows[-1][0] != number - 1:
                current = _Stretch([], header)
                found.append(current)
            current.rows.append((number, numbered[2]))
            header = None
            continue
        if named and current:
            current.before = named[1]
        elif named and header:
            found.append(_Stretch([], header, named[1]))
        current, header = None, named[1] if named else None
    return found


def _file_before_next(stretches: Sequence[_Stretch], order: Sequence[str]) -> str | None:
    """Return the file that stands before the next header that was shown; the last file if there is none."""
    headers = [stretches[0].before, *(name for s in stretches[1:] for name in (s.after, s.before))]
    following = next((name for name in headers if name), None)
    if following in order:
        at = order.index(following)
        return order[at - 1] if at else None
    return order[-1] if order else None
