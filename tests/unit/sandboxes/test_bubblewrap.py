"""Limits and isolation of a program in bubblewrap, without running it: command line, options, control groups."""

import os

import pytest

from dgm.errors import Infrastructure, UserError
from dgm.protocols import Mount, SandboxSpec
from dgm.sandboxes import scratch
from dgm.sandboxes.bubblewrap import Confinement
from dgm.sandboxes.scratch import ControlGroup, Scratch

SPEC = SandboxSpec("python", mounts=[Mount("/host/x", "/opt/a/b")], pids=7, memory_mb=3, disk_mb=2)
LIMITS = {"--nproc=7", f"--data={3 << 20}"}
FILE_SIZE = f"--fsize={2 << 20}"


def make(tmp_path, *, grouped=False, privileged=True, capable=True):
    (tmp_path / "etc").mkdir()
    return Confinement(
        bwrap="/usr/bin/bwrap",
        scratch=Scratch(tmp_path),
        group=ControlGroup(tmp_path / "group") if grouped else None,
        spec=SPEC,
        uid=58_001,
        gid=10_001,
        privileged=privileged,
        capable=capable,
    )


def words_of(confinement):
    command = confinement.command(["true"], "/work", {"A": "b"}, 5)
    return command, confinement.options(3, 4).decode().split("\0")


def test_a_control_group_is_joined_and_bounds_all_programs_together(tmp_path):
    command, _ = words_of(make(tmp_path, grouped=True))
    assert command[4] == str(tmp_path / "group" / "cgroup.procs")
    assert not {*LIMITS, FILE_SIZE} & {*command}


def test_without_one_each_program_has_limits(tmp_path):
    command, _ = words_of(make(tmp_path))
    assert command[4] == ""
    assert {*command} >= LIMITS
    assert FILE_SIZE not in command, "the kernel bounds root's tmpfs, and a hollow file takes nothing of it"


@pytest.mark.parametrize("capable", [False, True])
def test_an_ordinary_users_program_has_limits_and_a_user_namespace(tmp_path, capable):
    command, options = words_of(make(tmp_path, privileged=False, capable=capable))
    assert {*command} >= {*LIMITS, FILE_SIZE}
    assert "--unshare-user" in options
    assert ("CAP_SYS_RESOURCE" in options) is capable
    assert ("--bounding-set=-all" in command) is capable


@pytest.mark.parametrize("privileged", [False, True])
def test_nothing_of_the_host_is_shown_but_what_is_meant(tmp_path, privileged):
    command, options = words_of(make(tmp_path, privileged=privileged))
    shown = [options[at + 1] for at, word in enumerate(options) if word.startswith(("--ro-bind", "--bind"))]
    allowed = (
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/etc/ld.so.cache",
        "/etc/alternatives",
        "/host/x",
        str(tmp_path),
    )
    assert [path for path in shown if not path.startswith(allowed)] == []
    assert {"--clearenv", "--die-with-parent", "--unshare-net", "--unshare-pid", "--unshare-ipc"} <= {
        *options
    }
    assert command[-2:] == ["A=b", "true"]
    remounted = [options[at + 1] for at, word in enumerate(options) if word == "--remount-ro"]
    assert remounted == ["/dev", "/"]


def test_a_zero_byte_cannot_make_an_option(tmp_path):
    with pytest.raises(UserError, match="holds a zero byte"):
        make(tmp_path).command(["true"], "/work", {"A": "b\0--cap-add"}, 5)


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
