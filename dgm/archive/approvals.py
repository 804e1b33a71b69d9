"""Children that wait for a person's yes or no, and the answers: one small file each, in the run's folder.

Whoever answers writes ``approvals/<action>``, by ``dgm approve`` or by hand: ``yes`` or ``no`` as the first word, then
the reason. Only the process that writes the run's log reads it, so that no answer is lost, whether anything runs or
not. Beside it lies what is asked about, ``approvals/<action>.diff``, byte for byte: for programs, as a terminal might
act upon what an agent wrote. ``dgm approve`` shows it to people.
"""

import stat
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.durable import write_durably
from dgm.archive.lock import unwritable
from dgm.domain import ActionId, Born
from dgm.errors import UserError

FOLDER = "approvals"
ANSWERS = {"yes": True, "no": False}
MOST_BYTES = 10_000
"""Of an answer."""
MOST_CHARS = 300
"""Of a reason that is kept."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A child that is ready to be born, when a person says so."""

    child: Born
    since: float
    """Unix time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person says of a child."""

    yes: bool
    reason: str = ""
    """One line; empty where none was given."""


class NoAnswer(ValueError):
    """A file is there and holds something else than an answer; one line."""


def put_answer(run: Path, action: ActionId, answer: Answer) -> None:
    """Answers for the child of an action; an earlier answer that nobody has read yet is replaced.

    Of the reason the first ``MOST_CHARS`` characters are kept.

    Raises:
        UserError: the run's folder is read-only, or something else lies where the answers do.
        Infrastructure: the disk is full or failing.
    """
    reason = " ".join(answer.reason.split())[:MOST_CHARS]
    text = f"{'yes' if answer.yes else 'no'} {reason}".rstrip()
    write_durably(_place(run, str(action)), text.encode("utf-8", "replace") + b"\n")


def read_answer(run: Path, action: ActionId) -> Answer | None:
    """The answer for the child of an action; None where there is none, or an empty file.

    Raises:
        NoAnswer: there is something else.
    """
    path = run / FOLDER / str(action)
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise NoAnswer(f"{path}: not a file of at most {MOST_BYTES} bytes; write 'yes' or 'no' into it")
        words = path.read_bytes().decode("utf-8", "replace").split()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NoAnswer(f"{path}: cannot be read: {error.strerror}") from error
    if not words:
        return None
    first = words[0].rstrip(",.:;!").lower()
    if first not in ANSWERS:
        raise NoAnswer(f"{path}: begins with {words[0][:40]!r}; write 'yes' or 'no', then the reason")
    return Answer(ANSWERS[first], " ".join(words[1:])[:MOST_CHARS])


def show(run: Path, action: ActionId, diff: bytes) -> None:
    """Puts a child's diff where a person finds it; raises as ``put_answer``."""
    write_durably(_place(run, f"{action}.diff"), diff)


def shown(run: Path, action: ActionId) -> bool:
    """Whether a child's diff lies where a person finds it."""
    return (run / FOLDER / f"{action}.diff").exists()


def forget(run: Path, action: ActionId) -> None:
    """Removes a child's diff and the answer for it, once the log says what became of it.

    Raises:
        UserError: the run's folder is read-only.
        Infrastructure: the disk is failing.
    """
    for name in (f"{action}.diff", str(action)):
        path = run / FOLDER / name
        try:
            path.unlink(missing_ok=True)
        except IsADirectoryError:
            continue
        except OSError as error:
            raise unwritable(path, error) from error


def _place(run: Path, name: str) -> Path:
    folder, place = run / FOLDER, run / FOLDER / name
    if folder.exists() and not folder.is_dir():
        raise UserError(
            f"{folder}: is no folder; the answers for children that wait lie there, so move it away"
        )
    if place.is_dir():
        raise UserError(f"{place}: is a folder; move it away")
    return place
