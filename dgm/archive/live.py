"""Files beside a run's log about the moment: what its process does now, and whether it is asked to stop.

No decision depends on them, and they count only while a process writes the run; but the checks of models that a
process began are noted durably until they are counted, because they may have been paid. A request to stop
is a file, and no signal, because the process may be somebody's program; so it also reaches another container or
machine, wherever the folder is shared.

A person's answer about a child that waits is the file ``approvals/<action>``, written by ``dgm approve`` or by hand:
``yes`` or ``no`` as the first word, then the reason. Only the process that writes the run's log reads it, so an answer
given meanwhile is not lost. The child's diff lies beside it in ``approvals/<action>.diff``, byte for byte. That file is
for programs: a terminal might execute escape sequences that an agent wrote. ``dgm approve`` shows the diff to people.
A person's note about an agent lies in ``notes`` until it is read.
"""

import json
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from dgm.archive.durable import write_durably
from dgm.archive.events import AgentNoted, decode, encode
from dgm.archive.lock import STOP_FILE, Holder, error_of_write
from dgm.archive.run import writer
from dgm.bounded_reading import read_file
from dgm.domain import ActionId, Usage
from dgm.errors import ArchiveCorrupt, UserError

LIVE_FILE = "live.json"
CHECKS_FILE = "checks.json"

_Begun = list[tuple[str, list[int | float]]]
"""Model and worst-case usage of each check that was begun."""


class LiveCalls(msgspec.Struct, frozen=True):
    """The open model calls of one moment."""

    under_way: int
    """Number of calls that their model is working on."""
    waiting: int
    """Number of calls that wait: for the budget, for a slot at the provider, or for the next try."""
    oldest_wait: Annotated[float, msgspec.Meta(ge=0, le=1e11)] | None
    """Unix time since which the oldest of them waits; None if none does."""


class NodeState(msgspec.Struct, frozen=True):
    """One engine, or one node of a cluster, at one moment of a session."""

    name: str
    """Address of the engine, or name of the node."""
    slots: int
    """Sandboxes of one processor that fit there at once."""
    busy: int
    """Sandboxes that are open there."""
    opened: int
    """Sandboxes that were opened there in this session."""
    failures: int
    """Times that it failed in this session."""
    images: int
    """Images that were built or pulled there in this session, for its sandboxes."""
    problem: str = ""
    """Why no sandbox is opened there now; empty if it is used."""


class LiveState(msgspec.Struct, frozen=True):
    """The current work of the process that writes a run."""

    calls: LiveCalls | None = None
    nodes: tuple[NodeState, ...] = ()
    """Where its sandboxes are; empty if there is one engine."""


def write_live(folder: Path, state: LiveState) -> None:
    """Publish the state of the process that writes the run.

    Raises:
        OSError: the folder cannot be written.
    """
    _replace_file(folder / LIVE_FILE, msgspec.json.encode(state))


def read_live(folder: Path) -> LiveState:
    """Return the published state; an empty one if there is none that can be read."""
    try:
        return msgspec.json.decode(read_file(folder / LIVE_FILE), type=LiveState)
    except (OSError, ValueError):
        return LiveState()


def remove_live(folder: Path) -> None:
    """Remove the published state, where there is one and the folder can be written."""
    with suppress(OSError):
        (folder / LIVE_FILE).unlink(missing_ok=True)


def stop_run(folder: Path, *, now: bool = False) -> Holder | None:
    """Ask the process that writes a run to end gracefully, or at once if it was asked before; do not wait for it.

    Args:
        folder: of the run.
        now: do not let it wait for the steps that are under way.

    Returns:
        The process; None if no process writes the run.

    Raises:
        UserError: the folder cannot be written.
    """
    holder, name = writer(folder), folder.resolve().name
    if holder is None:
        return None
    request = {"now": now or read_stop_request(folder) is not None}
    try:
        _replace_file(folder / STOP_FILE, json.dumps(request).encode())
    except OSError as error:
        raise UserError(
            f"{folder / STOP_FILE}: cannot be written ({error.strerror}); stop {name} as the user who runs it "
            f"(pid {holder.pid} on {holder.host})"
        ) from error
    return holder


def read_stop_request(folder: Path) -> bool | None:
    """Return whether the work is to end at once, or None if it is not to end."""
    try:
        return msgspec.json.decode(read_file(folder / STOP_FILE), type=dict[str, bool])["now"]
    except (OSError, ValueError, KeyError):
        return None


# Checks of models before a session: the log cannot hold them, as its next event begins the session.


def find_cut_checks(folder: Path) -> Sequence[tuple[str, Usage]]:
    """Return the model and worst-case usage of each check without an end in the log.

    The run must have no writer.
    """
    begun = _read_begun(folder)
    return [(model, _usage_of(worst)) for model, worst in [*begun["earlier"], *begun["now"]]]


def read_earlier_checks(folder: Path) -> Sequence[tuple[str, Usage]]:
    """Return the same for the checks that an earlier process began."""
    return [(model, _usage_of(worst)) for model, worst in _read_begun(folder)["earlier"]]


def begin_checks(folder: Path, worst: Mapping[str, Usage]) -> None:
    """Note durably, by model, that checks are about to be made; checks cut off earlier are kept."""
    begun = _read_begun(folder)
    now = [(model, list(astuple(usage))) for model, usage in worst.items()]
    _write_begun(folder, [*begun["earlier"], *begun["now"]], now)


def end_checks(folder: Path, *, counted: bool) -> None:
    """Note that the current checks have ended; ``counted``: the earlier ones are in the log as well."""
    earlier = _read_begun(folder)["earlier"]
    if earlier and not counted:
        _write_begun(folder, earlier, [])
    else:
        (folder / CHECKS_FILE).unlink(missing_ok=True)


def _read_begun(folder: Path) -> dict[str, _Begun]:
    try:
        return msgspec.json.decode(read_file(folder / CHECKS_FILE), type=dict[str, _Begun])
    except FileNotFoundError:
        return {"earlier": [], "now": []}
    except ValueError as error:
        raise ArchiveCorrupt(
            f"{folder / CHECKS_FILE}: not what dgm wrote ({error}); restore it from a copy"
        ) from error


def _write_begun(folder: Path, earlier: _Begun, now: _Begun) -> None:
    write_durably(folder / CHECKS_FILE, msgspec.json.encode({"earlier": earlier, "now": now}))


def _usage_of(numbers: Sequence[int | float]) -> Usage:
    return Usage(*numbers)  # type: ignore[arg-type]  # whole numbers are read as such


def _replace_file(file: Path, data: bytes) -> None:
    draft = file.parent / f".{secrets.token_hex(6)}"
    try:
        draft.write_bytes(data)
        draft.replace(file)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


NOTES = "notes"
NOTE_CHARS = 1_000
"""Maximum characters of a note."""


def put_note(run: Path, note: AgentNoted) -> None:
    """Leave a note for the process that writes the run; raise like ``put_answer``."""
    write_durably(run / NOTES / f"{secrets.token_hex(8)}.json", encode(note))


def read_notes(run: Path) -> Iterator[tuple[Path, AgentNoted]]:
    """Yield the notes that were left, with their files; what is no note is passed over."""
    for path in sorted((run / NOTES).glob("*.json")):
        with suppress(OSError, ValueError):
            note = decode(read_file(path, 100 * NOTE_CHARS))
            if isinstance(note, AgentNoted):
                yield path, note


APPROVALS = "approvals"
_ANSWERS = {"yes": True, "no": False}
ANSWER_BYTES = 10_000
"""Maximum size of an answer in bytes."""
REASON_CHARS = 300
"""Maximum number of characters of a reason that are kept."""


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

    Only the first ``REASON_CHARS`` characters of the reason are kept.

    Raises:
        UserError: the run's folder is read-only, or something else lies where the answers do.
        Infrastructure: the disk is full or failing.
    """
    reason = " ".join(answer.reason.split())[:REASON_CHARS]
    text = f"{'yes' if answer.yes else 'no'} {reason}".rstrip()
    write_durably(_path_in_folder(run, str(action)), text.encode("utf-8", "replace") + b"\n")


def read_answer(run: Path, action: ActionId) -> ApprovalAnswer | None:
    """Return the answer for the child of an action, or None if there is no file or an empty one.

    Raises:
        UnreadableApproval: the file holds something else.
    """
    path = run / APPROVALS / str(action)
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > ANSWER_BYTES:
            raise UnreadableApproval(
                f"{path}: not a file of at most {ANSWER_BYTES} bytes; write 'yes' or 'no' into it"
            )
        words = path.read_bytes().decode("utf-8", "replace").split()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableApproval(f"{path}: cannot be read: {error.strerror}") from error
    if not words:
        return None
    first = words[0].rstrip(",.:;!").lower()
    if first not in _ANSWERS:
        raise UnreadableApproval(
            f"{path}: begins with {words[0][:40]!r}; write 'yes' or 'no', then the reason"
        )
    return ApprovalAnswer(_ANSWERS[first], " ".join(words[1:])[:REASON_CHARS])


def write_diff(run: Path, action: ActionId, diff: bytes) -> None:
    """Write a child's diff where a person finds it; raises like ``put_answer``."""
    write_durably(_path_in_folder(run, f"{action}.diff"), diff)


def is_diff_written(run: Path, action: ActionId) -> bool:
    """Return whether a child's diff lies where a person finds it."""
    return (run / APPROVALS / f"{action}.diff").exists()


def forget_answer(run: Path, action: ActionId) -> None:
    """Remove a child's diff and its answer, once the log records the decision.

    Raises:
        UserError: the run's folder is read-only.
        Infrastructure: the disk is failing.
    """
    for name in (f"{action}.diff", str(action)):
        path = run / APPROVALS / name
        try:
            path.unlink(missing_ok=True)
        except IsADirectoryError:
            continue
        except OSError as error:
            raise error_of_write(path, error) from error


def _path_in_folder(run: Path, name: str) -> Path:
    folder, place = run / APPROVALS, run / APPROVALS / name
    if folder.exists() and not folder.is_dir():
        raise UserError(
            f"{folder}: is no folder; the answers for children that wait lie there, so move it away"
        )
    if place.is_dir():
        raise UserError(f"{place}: is a folder; move it away")
    return place
