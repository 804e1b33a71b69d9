"""Control groups on a machine that tells little of itself."""

import os

from dgm.sandboxes import cgroups


def test_without_proc_there_are_none(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "_OWN_GROUPS", tmp_path / "missing")
    assert not cgroups.available()
