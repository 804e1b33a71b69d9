"""Children that wait for a person's approval, and the answers: one small file each, in the run's folder.

An answer is the file ``approvals/<action>``, written by ``dgm approve`` or by hand: ``yes`` or ``no`` as the first
word, then the reason. Only the process that writes the run's log reads it, so an answer given meanwhile is not lost.
The child's diff lies beside it in ``approvals/<action>.diff``, byte for byte. That file is for programs: a terminal
might execute escape sequences that an agent wrote. ``dgm approve`` shows the diff to people.
"""

import stat
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.durable import write_durably
from dgm.archive.lock import error_of_write
from dgm.domain import ActionId, Born
from dgm.errors import UserError

FOLDER = "approvals"
ANSWERS = {"yes": True, "no": False}
MOST_BYTES = 10_000
"""Maximum size of an answer in bytes."""
MOST_CHARS = 300
"""Maximum number of characters of a reason that are kept."""


@dataclass(frozen=True, slots=True)
class WaitingChild:
    """A child that is ready to be born once a person approves it."""

    child: Born
    since: float
    """Unix time."""


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """A person's decision on a child."""

    yes: bool
    reason: str = ""
    """One line; empty if none was given."""


class UnreadableApproval(ValueError):
    """The file exists but holds no valid answer; the message is one line."""


def put_answer(run: Path, action: ActionId, answer: ApprovalAnswer) -> None:
    """Write the answer for the child of an action, replacing an earlier answer that is still unread.

    Only the first ``MOST_CHARS`` characters of the reason are kept.

    Raises:
        UserError: the run's folder is read-only, or something else lies where the answers do.
        Infrastructure: the disk is full or failing.
    """
    reason = " ".join(answer.reason.split())[:MOST_CHARS]
    text = f"{'yes' if answer.yes else 'no'} {reason}".rstrip()
    write_durably(_path_in_folder(run, str(action)), text.encode("utf-8", "replace") + b"\n")


def read_answer(run: Path, action: ActionId) -> ApprovalAnswer | None:
    """Return the answer for the child of an action, or None if there is no file or an empty one.

    Raises:
        NoAnswer: the file holds something else.
    """
    path = run / FOLDER / str(action)
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise UnreadableApproval(
                f"{path}: not a file of at most {MOST_BYTES} bytes; write 'yes' or 'no' into it"
            )
        words = path.read_bytes().decode("utf-8", "replace").split()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableApproval(f"{path}: cannot be read: {error.strerror}") from error
    if not words:
        return None
    first = words[0].rstrip(",.:;!").lower()
    if first not in ANSWERS:
        raise UnreadableApproval(
            f"{path}: begins with {words[0][:40]!r}; write 'yes' or 'no', then the reason"
        )
    return ApprovalAnswer(ANSWERS[first], " ".join(words[1:])[:MOST_CHARS])


def write_diff(run: Path, action: ActionId, diff: bytes) -> None:
    """Write a child's diff where a person finds it; raises like ``put_answer``."""
    write_durably(_path_in_folder(run, f"{action}.diff"), diff)


def is_diff_written(run: Path, action: ActionId) -> bool:
    """Return whether a child's diff lies where a person finds it."""
    return (run / FOLDER / f"{action}.diff").exists()


def forget(run: Path, action: ActionId) -> None:
    """Remove a child's diff and its answer, once the log records the decision.

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
            raise error_of_write(path, error) from error


def _path_in_folder(run: Path, name: str) -> Path:
    folder, place = run / FOLDER, run / FOLDER / name
    if folder.exists() and not folder.is_dir():
        raise UserError(
            f"{folder}: is no folder; the answers for children that wait lie there, so move it away"
        )
    if place.is_dir():
        raise UserError(f"{place}: is a folder; move it away")
    return place
