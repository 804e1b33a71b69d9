"""Files beside a run's log about the moment: what its process does now, and whether it is asked to stop.

No decision depends on them, and they count only while a process writes the run; but the checks of models that a
process began are noted durably until they are counted, because they may have been paid. A request to stop
is a file, and no signal, because the process may be somebody's program; so it also reaches another container or
machine, wherever the folder is shared.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Annotated

import msgspec

from dgm.archive.durable import write_durably
from dgm.archive.lock import STOP_FILE, Holder
from dgm.archive.run import writer
from dgm.bounded_reading import read_file
from dgm.domain import Usage
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
