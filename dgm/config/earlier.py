"""What settings meant to the versions of dgm that froze them."""

from collections.abc import Mapping
from typing import Any

BEFORE_VETTING: Mapping[str, Mapping[str, Any]] = {
    "vetting": {"patch": False, "syntax": False, "probes": 0},
    "evidence": {"layout": 1},
}
"""How children were made before the settings said so."""


def as_made(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the frozen settings of a run, with the behaviour of its version where today's defaults differ.

    Args:
        record: ``settings`` of a ``run.json``; not changed.
    """
    if "vetting" in record:
        return record
    return {**record, **{name: {**record.get(name, {}), **was} for name, was in BEFORE_VETTING.items()}}
