"""Checks of models that are made before a session begins: noted in a file beside the log until they are counted.

The log is no place for them: its next event begins a session, and the time up to that belongs to nobody.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from dgm.archive.durable import write_durably
from dgm.domain import Usage

_FILE = "checks.json"


def cut_checks(folder: Path) -> Sequence[tuple[str, Usage]]:
    """Return the model and the worst case of each check without an end in the log; of a run that nobody writes."""
    found = _read(folder)
    return [*found["earlier"], *found["now"]]


def earlier_checks(folder: Path) -> Sequence[tuple[str, Usage]]:
    """Return those that an earlier process began."""
    return _read(folder)["earlier"]


def begin_checks(folder: Path, worst: Mapping[str, Usage]) -> None:
    """Note durably that checks are about to be made, by model; those that were cut off earlier are kept."""
    _write(folder, cut_checks(folder), list(worst.items()))


def end_checks(folder: Path, *, counted: bool) -> None:
    """Note that the checks of now have ended; ``counted``: those of earlier are in the log as well."""
    earlier = earlier_checks(folder)
    if earlier and not counted:
        _write(folder, earlier, ())
        return
    with suppress(FileNotFoundError):
        (folder / _FILE).unlink()


def _read(folder: Path) -> Mapping[str, Sequence[tuple[str, Usage]]]:
    try:
        record = json.loads((folder / _FILE).read_bytes())
        return {
            when: [(str(model), Usage(*usage)) for model, usage in record[when]]
            for when in ("earlier", "now")
        }
    except FileNotFoundError:
        return {"earlier": (), "now": ()}


def _write(folder: Path, earlier: Sequence[tuple[str, Usage]], now: Sequence[tuple[str, Usage]]) -> None:
    record = {
        "earlier": [(model, astuple(usage)) for model, usage in earlier],
        "now": [(model, astuple(usage)) for model, usage in now],
    }
    write_durably(folder / _FILE, json.dumps(record).encode())
