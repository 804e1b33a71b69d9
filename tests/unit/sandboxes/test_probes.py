"""What doctor says of a machine's sandboxes."""

import asyncio

import pytest

from dgm.sandboxes.probes import DiagnosisRow, is_fit, probe
from tests.support.each_engine import find_engine


def rows(**failed):
    checks = ("engine", "confined", "forks bounded", "memory bounded")
    return [
        DiagnosisRow(f"{engine}: {check}", check not in failed.get(engine, ()), "")
        for engine in ("docker", "bubblewrap")
        for check in checks
    ]


def test_a_machine_is_fit_by_the_rows_of_the_engine_that_would_be_chosen():
    found = rows(docker=["forks bounded"])
    assert not is_fit(found, "docker", unbounded=False)
    assert is_fit(found, "bubblewrap", unbounded=False)
    assert not is_fit([], "docker", unbounded=False)


def test_only_missing_bounds_can_be_accepted():
    assert is_fit(rows(docker=["forks bounded", "memory bounded"]), "docker", unbounded=True)
    assert not is_fit(rows(docker=["confined"]), "docker", unbounded=True)


@pytest.mark.sandbox
@pytest.mark.starts_processes
def test_a_sandbox_is_probed_from_the_inside_and_nothing_is_logged(caplog):
    find_engine("bubblewrap")
    checks = ("engine", "confined", "gateway reached", "forks bounded", "memory bounded")
    found = asyncio.run(probe("bubblewrap"))
    assert [(row.name, row.ok) for row in found] == [(f"bubblewrap: {check}", True) for check in checks], (
        found
    )
    assert caplog.messages == []
