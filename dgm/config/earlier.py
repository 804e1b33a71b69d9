"""Read settings as the version of dgm that froze them meant them."""

from collections.abc import Mapping
from typing import Any

BEFORE_VETTING: Mapping[str, Mapping[str, Any]] = {
    "vetting": {"patch": False, "syntax": False, "probes": 0},
    "evidence": {"layout": 1},
}
"""Values for runs that are older than the settings of making children."""


def restore_old_defaults(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a run's frozen settings; add the former behaviour if its version had no section ``vetting``.

    Args:
        record: ``settings`` of a ``run.json``; not changed.
    """
    if "vetting" in record:
        return record
    return {**record, **{name: {**record.get(name, {}), **was} for name, was in BEFORE_VETTING.items()}}
