"""What a hostile program can take in a sandbox, in both engines: never more than it was given."""

import asyncio
import os
import resource
from pathlib import Path

import pytest

from dgm.domain import Entry
from dgm.errors import AgentFault
from tests.docker.conftest import Inside, spec

MB = 1024 * 1024
FORK_BOMB = """
import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.02)
"""
FILL_BUFFERS = """
import socket
sent, kept = 0, []
listener = socket.create_server(("127.0.0.1", 0))
while sent < 400_000_000 and len(kept) < 900:
    pair = [socket.create_connection(listener.getsockname()), listener.accept()[0]]
    kept += pair
    for end in pair:
        end.setblocking(False)
        try:
            while True:
                sent += end.send(bytes(1 << 18))
        except BlockingIOError:
            pass
print(sent)
"""
DETACHED_FORK_BOMB = "import os\nif os.fork(): os._exit(0)\nos.setsid()\n" + FORK_BOMB


@pytest.fixture
def grouped(engine):
    """Skips where bubblewrap has no control group: it bounds each program, but not all of them together."""
    if getattr(engine, "bounds", "") == "resource limits":
        pytest.skip("NOT RUN with bubblewrap: it needs root and control groups of version 2")


def command(*argv, timeout_s=30.0, **more):
    """A piece of work: one command in a fresh sandbox."""
    return lambda sandbox: sandbox.exec(argv, timeout_s=timeout_s, **more)


def test_a_program_that_ignores_signals_times_out_with_its_output(inside: Inside):
    script = "trap '' TERM INT HUP; echo begun; while :; do sleep 1; done"
    for limit in (1, 5, 20):  # more, where the shell takes long to start
        done = inside(command("sh", "-c", script, timeout_s=limit))
        if done.output:
            break
    assert (done.exit_code, done.timed_out, done.output) == (124, True, b"begun\n")
    assert done.seconds < limit + 30


def test_what_a_timed_out_program_detached_dies_with_it(inside: Inside):
    async def work(sandbox):
        await sandbox.exec(["sh", "-c", "setsid sleep 345 >/dev/null 2>&1 & sleep 60"], timeout_s=0.7)
        return await sandbox.exec(["pgrep", "-f", "sleep 34[5]"], timeout_s=60)

    assert inside(work).exit_code == 1


def test_each_process_has_processor_time(inside: Inside):
    done = inside(command("python3", "-c", "while True: pass", timeout_s=300, processor_s=1.0))
    assert (done.exit_code, done.timed_out, done.out_of_processor) == (124, True, True)
    assert done.seconds < 60


def test_waiting_takes_no_processor_time(inside: Inside):
    done = inside(command("sleep", "infinity", timeout_s=2.0, processor_s=1.5))
    assert (done.timed_out, done.out_of_processor) == (True, False)
    assert inside(command("true", processor_s=60.0)).exit_code == 0


def test_endless_output_is_cut_without_growing_the_host(inside: Inside):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = inside(command("head", "-c", "1G", "/dev/zero", output_limit=10_000, timeout_s=60))
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert (done.exit_code, len(done.output), done.truncated) == (0, 10_000, True)
    assert grown_mb < 50


def test_memory_beyond_the_limit_is_not_to_be_had(inside: Inside):
    done = inside(command("python3", "-c", "x = bytearray(600_000_000); print('survived')"), memory_mb=256)
    assert b"survived" not in done.output
    assert done.exit_code != 0


def test_reserved_addresses_are_no_memory(inside: Inside):
    """Java and Node.js reserve gigabytes."""
    code = "import mmap; mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0); print('had')"
    assert inside(command("python3", "-c", code), memory_mb=256).output == b"had\n"


def test_files_of_memory_alone_count_as_memory(grouped, inside: Inside):
    code = "import os\nkept = []\nwhile True: kept.append(os.memfd_create('x')); os.write(kept[-1], bytes(8_000_000))"
    done = inside(command("python3", "-c", code), memory_mb=64)
    assert (done.exit_code, done.out_of_memory) == (137, True)


def test_buffers_of_tcp_are_bounded(engine, grouped, inside: Inside):
    if engine.name == "docker" and not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        pytest.skip("NOT RUN with docker: it has no bound for them in control groups of version 1")
    done = inside(command("python3", "-c", FILL_BUFFERS), memory_mb=64)
    assert done.out_of_memory or int(done.output) < 150_000_000


def test_memory_beyond_the_limit_kills_the_program_and_not_its_sandbox(grouped, inside: Inside):
    async def work(sandbox):
        eaten = await sandbox.exec(["python3", "-c", "x = bytearray(600_000_000); print(1)"], timeout_s=30)
        return eaten, await sandbox.exec(["sh", "-c", "echo alive; kill -9 $$"], timeout_s=30)

    eaten, after = inside(work, memory_mb=128)
    assert (eaten.output, eaten.exit_code, eaten.out_of_memory) == (b"", 137, True)
    assert (after.output, after.exit_code, after.out_of_memory) == (b"alive\n", 137, False)


def test_a_fork_bomb_stays_within_its_pids(inside: Inside):
    count = (
        "import os, time\nn = 0\ntry:\n  while n < 500:\n    if not os.fork(): time.sleep(60)\n    n += 1\n"
    )
    done = inside(command("python3", "-c", count + "except OSError as e: print(n, e.errno)"), pids=40)
    forks, errno = map(int, done.output.split())
    assert errno == 11
    assert 30 <= forks <= 44


def test_a_detached_fork_bomb_ends_at_its_timeout_and_the_sandbox_answers(inside: Inside):
    async def work(sandbox):
        await sandbox.exec(["sh", "-c", "echo work > /work/f"], timeout_s=60)
        bomb = await sandbox.exec(["python3", "-c", FORK_BOMB], timeout_s=1)
        after = await sandbox.exec(["echo", "alive"], timeout_s=20)
        await sandbox.exec(["python3", "-c", DETACHED_FORK_BOMB], timeout_s=3)
        return bomb.timed_out, after.output, await sandbox.get("/work", limit_bytes=MB)

    assert inside(work, pids=40) == (True, b"alive\n", {"f": Entry(b"work\n")})


def test_disk_is_bounded_over_all_folders_together(inside: Inside):
    script = (
        "for d in /work /agent /job /tmp /dev/shm; do head -c 100M /dev/zero > $d/fill; done 2>/dev/null; "
    )
    script += "cat /work/fill /agent/fill /job/fill /tmp/fill /dev/shm/fill 2>/dev/null | wc -c"
    done = inside(command("sh", "-c", script), disk_mb=32, memory_mb=512)
    assert 8 * MB <= int(done.output) <= 32 * MB


def test_a_full_disk_is_the_agents_own_problem(inside: Inside):
    async def work(sandbox):
        full = await sandbox.exec(["sh", "-c", "head -c 100M /dev/zero > /work/fill"], timeout_s=30)
        with pytest.raises(AgentFault):
            await sandbox.put({"f": Entry(bytes(MB))}, "/work")
        freed = await sandbox.exec(["sh", "-c", "rm /work/fill && echo x > /work/f"], timeout_s=30)
        return full.exit_code != 0, freed.exit_code

    assert inside(work, disk_mb=16) == (True, 0)


def test_many_small_files_are_bounded(inside: Inside):
    script = "import os\nn = 0\ntry:\n  while n < 100_000: os.close(os.open(f'/work/{n}', 65)); n += 1\n"
    done = inside(command("python3", "-c", script + "except OSError as e: print(n, e.errno)"), disk_mb=16)
    files, errno = map(int, done.output.split())
    assert errno == 28
    assert files <= 16 * 256


def test_a_program_cannot_end_its_sandbox_or_open_more_files(inside: Inside):
    async def work(sandbox):
        await sandbox.exec(["sh", "-c", "kill -9 -1; kill -9 1"], timeout_s=60)
        return await sandbox.exec(["sh", "-c", "ulimit -Hn; ulimit -Hc"], timeout_s=60)

    assert inside(work).output == b"1024\n0\n"


def test_processor_time_is_bounded(grouped, inside: Inside):
    measure = (
        "import os, time\nchild = os.fork()\nend = time.time() + 2\nwhile time.time() < end: pass\n"
        "if child:\n  os.wait()\n  print(sum(os.times()[:4]))"
    )
    done = inside(command("python3", "-c", measure), cpus=0.5)
    assert float(done.output) < 1.8


def test_one_sandboxs_bomb_leaves_the_others_alone(engine, runner):
    async def side_by_side():
        async with engine.open(spec(pids=40)) as bombed, engine.open(spec()) as calm:
            bombing = asyncio.create_task(bombed.exec(["python3", "-c", FORK_BOMB], timeout_s=2))
            await asyncio.sleep(0.7)
            done = await calm.exec(["sh", "-c", "echo fine"], timeout_s=20)
            await bombing
            return done

    assert runner.run(side_by_side()).output == b"fine\n"


USE_UP_SIGNALS = """
import ctypes, os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, {40})
queued = 0
while ctypes.CDLL(None).sigqueue(os.getpid(), 40, None) == 0 and queued < 1_000_000:
    queued += 1
print(queued, flush=True)
time.sleep(2.5)
"""


def test_one_sandboxs_signals_leave_the_others_theirs(engine, runner):
    async def side_by_side():
        async with engine.open(spec()) as greedy, engine.open(spec()) as calm:
            taking = asyncio.create_task(greedy.exec(["python3", "-c", USE_UP_SIGNALS], timeout_s=30))
            await asyncio.sleep(1)
            done = await calm.exec(["timeout", "9", "id", "-u"], timeout_s=20)
            own = await greedy.exec(["id", "-u"], timeout_s=20)
            return (await taking).output, done.output, own.output

    queued, uid, other = runner.run(side_by_side())
    assert 1 <= int(queued) <= 600
    assert uid.strip().isdigit()
    assert uid != other


@pytest.mark.sandbox
def test_an_ordinary_users_sandbox_has_few_signals_and_watches_and_no_capability(ordinary, runner):
    watches = "import ctypes\nprint(sum(ctypes.CDLL(None).inotify_init() >= 0 for _ in range(200)))\n"
    capabilities = (
        "print(sum(line.split() == [k, '0' * 16] for line in open('/proc/self/status') for k in KEYS))"
    )
    keys = "KEYS = ('CapInh:', 'CapPrm:', 'CapEff:', 'CapBnd:', 'CapAmb:')\n"

    async def work():
        async with ordinary.open(spec()) as sandbox:
            code = watches + keys + capabilities + USE_UP_SIGNALS
            return (await sandbox.exec(["python3", "-c", code], timeout_s=30)).output.split()

    inotify, none, queued = map(int, runner.run(work()))
    assert inotify <= 24
    assert none == 5
    assert queued <= 600


def test_one_sandboxs_terminals_leave_the_others_theirs(engine, runner):
    if engine.name == "docker" or os.geteuid() != 0:
        pytest.skip("NOT RUN: only root's bubblewrap bounds the terminals of a sandbox")
    take = "import os\nn = 0\ntry:\n  while n < 900: os.openpty(); n += 1\nexcept OSError: pass\nprint(n)"

    async def work():
        async with engine.open(spec()) as sandbox:
            return await sandbox.exec(["python3", "-c", take], timeout_s=30)

    assert 1 <= int(runner.run(work()).output) <= 64
