"""``dgm.doctor`` and ``dgm.settings``."""

import pytest

import dgm
from dgm.errors import UserError


@pytest.mark.starts_processes
def test_the_machine_is_checked(monkeypatch):
    monkeypatch.setenv("PATH", "")
    found = dgm.doctor("offline")
    checks = {row["check"]: row for row in found.checks}
    assert checks["git"] == {"check": "git", "ok": False, "detail": "not found; install git"}
    assert checks["model offline"]["ok"] is True
    assert found.ok is checks["sandbox chosen by auto"]["ok"]


def test_settings_are_rows():
    (row,) = dgm.settings("budget.usd")
    assert (row["name"], row["default"]) == ("budget.usd", None)
    assert len(dgm.settings()) > 100
    assert "DGM_ARCHIVE" in [row["name"] for row in dgm.variables()]
    with pytest.raises(UserError, match="nearest: budget"):
        dgm.settings("budget.uds")
