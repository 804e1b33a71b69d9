"""Checks of models that begin before a session does, noted in a file beside the log until they are counted.

They are not in the log, because its next event begins a session and the time before that belongs to none.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from dgm.archive.durable import write_durably
from dgm.bounded_reading import read_json, refuse_odd_values
from dgm.domain import Usage

_FILE = "checks.json"


def find_cut_checks(folder: Path) -> Sequence[tuple[str, Usage]]:
    """Return the model and worst-case usage of each check without an end in the log.

    The run must have no writer.
    """
    found = _read(folder)
    return [*found["earlier"], *found["now"]]


def read_earlier_checks(folder: Path) -> Sequence[tuple[str, Usage]]:
    """Return the checks that an earlier process began."""
    return _read(folder)["earlier"]


def begin_checks(folder: Path, worst: Mapping[str, Usage]) -> None:
    """Note durably, by model, that checks are about to be made; checks cut off earlier are kept."""
    _write(folder, find_cut_checks(folder), list(worst.items()))


def end_checks(folder: Path, *, counted: bool) -> None:
    """Note that the current checks have ended; ``counted``: the earlier ones are in the log as well."""
    earlier = read_earlier_checks(folder)
    if earlier and not counted:
        _write(folder, earlier, ())
        return
    with suppress(FileNotFoundError):
        (folder / _FILE).unlink()


def _read(folder: Path) -> Mapping[str, Sequence[tuple[str, Usage]]]:
    try:
        record = read_json(folder / _FILE)
        with refuse_odd_values(folder / _FILE):
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
