"""Control groups of version 2: where they can be made, their limits and their counters."""

import os

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes import scratch
from dgm.sandboxes.scratch import ControlGroup


@pytest.fixture
def groups(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(scratch, "_GROUPS", tmp_path)
    return tmp_path


def test_groups_of_version_1_are_none(groups):
    (groups / "memory").mkdir()
    assert scratch.find_groups() is None
    assert not (groups / "dgm").exists()


def test_a_user_other_than_root_makes_none(groups, monkeypatch):
    (groups / "cgroup.controllers").write_text("cpu memory pids")
    (groups / "cgroup.subtree_control").write_text("cpu memory pids")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert scratch.find_groups() is None


def test_the_controllers_are_enabled_for_the_groups_below(groups):
    (groups / "cgroup.controllers").write_text("cpuset cpu memory pids")
    (groups / "dgm").mkdir()
    for folder in (groups, groups / "dgm"):
        (folder / "cgroup.subtree_control").write_text("pids")
    assert scratch.find_groups() == groups / "dgm"
    assert (groups / "dgm" / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_a_tree_that_cannot_be_changed_has_none(groups):
    (groups / "cgroup.controllers").write_text("cpu memory pids")
    assert scratch.find_groups() is None


def test_counters_are_read(tmp_path):
    group = ControlGroup(tmp_path)
    assert (group.count_memory_kills(), group.processor_s()) == (0, 0.0)
    (tmp_path / "memory.events").write_text("oom 3\noom_kill 2\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 7\n")
    assert (group.count_memory_kills(), group.processor_s()) == (2, 1.5)


def test_a_group_that_cannot_be_made_is_no_fault_of_the_agent(tmp_path):
    with pytest.raises(Infrastructure, match="cannot make the control group a"):
        ControlGroup(tmp_path / "missing" / "a").create(pids=1, memory_mb=1, cpus=1)
