"""The list of system calls that a sandbox may make, and the filter that is compiled from it for bubblewrap."""

import errno
import json
import struct

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes.seccomp import ARCHITECTURES, NEWEST, filter_program, numbers, profile
from tests.support.refusals import attempts_on

ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000
DOORS = """
    _sysctl acct add_key adjtimex bpf chroot clock_adjtime clock_settime create_module delete_module
    fanotify_init finit_module fsconfig fsmount fsopen fspick get_kernel_syms get_mempolicy init_module
    io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl
    lookup_dcookie mbind migrate_pages mount mount_setattr move_mount move_pages name_to_handle_at nfsservctl
    open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root process_madvise process_vm_readv
    process_vm_writev ptrace query_module quotactl quotactl_fd reboot request_key set_mempolicy
    set_mempolicy_home_node setdomainname sethostname setns settimeofday swapoff swapon sysfs syslog umount2
    unshare uselib userfaultfd ustat vhangup vmsplice
"""
"""Doors to the kernel that code under test never needs."""
UNUSED = """
    afs_syscall epoll_ctl_old epoll_wait_old fanotify_mark get_thread_area getpmsg putpmsg security
    set_thread_area tuxcall vserver
"""
"""Calls that no kernel of these machines answers, or that follow from a closed door."""
BY_ARGUMENT = {"clone", "clone3", "ioctl", "prlimit64", "socket", "socketpair"}
TIOCSTI, TIOCLINUX = 0x5412, 0x541C

machines = pytest.mark.parametrize("machine", ARCHITECTURES)


def decide(machine, number, argument=0, index=0, audit=None):
    """Interprets the BPF program for one system call."""
    audit = ARCHITECTURES[machine][0] if audit is None else audit
    data = {0: number, 4: audit, 16 + 8 * index: argument & 0xFFFFFFFF}
    code = list(struct.iter_unpack("=HBBI", filter_program(machine)))
    at = accumulator = 0
    while True:
        operation, yes, no, value = code[at]
        at += 1
        match operation:
            case 0x20:
                accumulator = data.get(value, 0)
            case 0x54:
                accumulator &= value
            case 0x15:
                at += yes if accumulator == value else no
            case 0x25:
                at += yes if accumulator > value else no
            case 0x35:
                at += yes if accumulator >= value else no
            case 0x06:
                return value


def rules():
    return json.loads(profile().read_text())["syscalls"]


def plainly_allowed():
    return {
        name for rule in rules() if "args" not in rule and "errnoRet" not in rule for name in rule["names"]
    }


@machines
def test_every_call_is_allowed_or_refused_as_the_list_says(machine):
    known = numbers(machine)
    for name in known.keys() - BY_ARGUMENT:
        expected = ALLOW if name in plainly_allowed() else REFUSE | errno.EPERM
        assert decide(machine, known[name]) == expected, name
    assert all(
        decide(machine, number) == REFUSE | errno.EPERM
        for number in range(NEWEST)
        if number not in known.values()
    )


def test_the_list_and_the_table_know_the_same_calls():
    closed = {*DOORS.split(), *UNUSED.split()}
    known = set().union(*(numbers(machine) for machine in ARCHITECTURES))
    assert plainly_allowed() | BY_ARGUMENT | closed == known
    assert not plainly_allowed() & (BY_ARGUMENT | closed)
    assert {name for rule in rules() for name in rule["names"]} == plainly_allowed() | BY_ARGUMENT
    assert all(max(numbers(machine).values()) == NEWEST for machine in ARCHITECTURES)
    assert json.loads(profile().read_text())["defaultAction"] == "SCMP_ACT_ERRNO"


@machines
def test_a_sandbox_is_examined_for_every_call_that_is_refused(machine):
    known = numbers(machine)
    tried = attempts_on(machine)
    for name, number, arguments in tried:
        at = 1 if name.startswith("TIOC") else 0
        value = 4711 if arguments[at] == "self" else arguments[at]
        assert decide(machine, number, value, at) & 0xFFFF0000 == REFUSE, name
    assert {number for _, number, _ in tried} >= set(known.values()) - {
        known[name] for name in plainly_allowed() if name in known
    } - {known["socketpair"]}


@machines
def test_only_harmless_families_of_sockets_and_processes_can_be_made(machine):
    known = numbers(machine)
    for name in ("socket", "socketpair"):
        assert [family for family in range(64) if decide(machine, known[name], family) == ALLOW] == [1, 2, 10]
        assert decide(machine, known[name], 40) == REFUSE | errno.EPERM
    assert decide(machine, known["clone"], 0x01200011) == ALLOW
    assert decide(machine, known["clone"], 0x3D0F00) == ALLOW  # a thread
    for namespace in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert decide(machine, known["clone"], namespace | 0x11) == REFUSE | errno.EPERM
    assert decide(machine, known["clone3"]) == REFUSE | errno.ENOSYS


@machines
def test_nothing_types_into_a_terminal(machine):
    ioctl = numbers(machine)["ioctl"]
    near = {code + step for code in (TIOCSTI, TIOCLINUX) for step in range(-20, 20)}
    codes = (
        near
        | {0, 0x5401, 0x5421, 0x8933, 0xFFFF, 0x7FFFFFFF, 0x80045430, 0xFFFFFFFF}
        | {1 << bit for bit in range(32)}
    )
    refused = {code for code in codes if decide(machine, ioctl, code, index=1) != ALLOW}
    assert refused == {TIOCSTI, TIOCLINUX}


@machines
def test_limits_of_other_processes_cannot_be_set(machine):
    number = numbers(machine)["prlimit64"]
    assert decide(machine, number, 0) == ALLOW
    assert {decide(machine, number, pid) for pid in (1, 2, 0x7FFFFFFF)} == {REFUSE | errno.EPERM}


def test_comparisons_are_of_the_half_that_the_kernel_takes():
    arguments = [argument for rule in rules() for argument in rule.get("args", ())]
    assert {argument["op"] for argument in arguments} == {"SCMP_CMP_MASKED_EQ"}
    assert max(argument["value"] for argument in arguments) == 0xFFFFFFFF


def test_other_machines_are_killed_and_unknown_calls_do_not_exist():
    assert decide("x86_64", 0, audit=0x40000003) == KILL
    assert decide("x86_64", 0, audit=0xC00000B7) == KILL
    for number in (NEWEST + 1, 100_000, 0x40000000 + 1, 0xFFFFFFFF):
        assert decide("x86_64", number) == REFUSE | errno.ENOSYS


@machines
def test_what_interpreters_and_compilers_call_is_allowed(machine):
    wanted = (
        "rseq membarrier statx openat2 close_range faccessat2 memfd_create pidfd_open futex_waitv getrandom"
    )
    wanted += " copy_file_range fchmodat2 cachestat epoll_pwait2 seccomp landlock_create_ruleset prlimit64 pkey_alloc"
    known = numbers(machine)
    assert [name for name in wanted.split() if decide(machine, known[name]) != ALLOW] == []


def test_no_filter_for_an_unknown_machine():
    with pytest.raises(Infrastructure, match="riscv64"):
        filter_program("riscv64")
