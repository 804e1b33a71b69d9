"""Read settings as the version of dgm that froze them meant them."""

from collections.abc import Mapping
from typing import Any

BEFORE_VETTING: Mapping[str, Mapping[str, Any]] = {
    "vetting": {"patch": False, "syntax": False, "probes": 0},
    "evidence": {"layout": 1},
}
"""Values for runs that are older than the settings of making children."""


def restore_old_defaults(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a run's frozen settings without those that are gone; add the former behaviour of older versions.

    Args:
        record: ``settings`` of a ``run.json``; not changed.
    """
    if "speculate" in record.get("scale", {}):
        scale = {name: value for name, value in record["scale"].items() if name != "speculate"}
        record = {**record, "scale": scale}
    if "vetting" in record:
        return record
    return {**record, **{name: {**record.get(name, {}), **was} for name, was in BEFORE_VETTING.items()}}
