"""What a program sees and may do in a sandbox, in both engines: many small edges."""

import asyncio
import os
import socket
import threading
from pathlib import Path

import pytest

from dgm.protocols import Mount, SharedSocket
from tests.docker.conftest import Inside

SYSCALLS = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for number in map(int, sys.argv[1:]):
    result = libc.syscall(number, 0, 0, 0, 0, 0)
    print(number, result, ctypes.get_errno())
"""


@pytest.mark.parametrize(
    ("script", "exit_code"),
    [("true", 0), ("exit 42", 42), ("exit 124", 124), ("kill -TERM $$", 143), ("kill -KILL $$", 137)],
)
def test_the_exit_code_is_the_programs_own(call, script, exit_code):
    done = call("sh", "-c", script)
    assert (done.exit_code, done.timed_out, done.out_of_memory) == (exit_code, False, False)
    assert done.seconds < 10


def test_a_missing_program_or_folder_is_the_commands_failure(call):
    program, folder = call("no-such-program"), call("true", cwd="/work/nowhere")
    assert (program.exit_code, folder.exit_code) == (127, 125)
    assert b"no-such-program" in program.output
    assert b"/work/nowhere" in folder.output


def test_output_is_merged_in_order_and_may_be_any_bytes(call, python):
    done = call("sh", "-c", "echo one; echo two >&2; echo three; echo four >&2")
    assert done.output == b"one\ntwo\nthree\nfour\n"
    assert python("import sys; sys.stdout.buffer.write(bytes(range(256)))").output == bytes(range(256))


USE_UP_SIGNALS = """
import ctypes, os, pathlib, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, {40})
while ctypes.CDLL(None).sigqueue(os.getpid(), 40, None) == 0:
    pass
pathlib.Path("/tmp/used-up").touch()
while not os.path.exists("/tmp/enough"):
    time.sleep(0.02)
"""


def test_what_helpers_say_is_no_part_of_the_output(inside: Inside):
    """timeout(1) complains where a program has used up its user's signals."""

    async def work(sandbox):
        using = asyncio.create_task(sandbox.exec(["python3", "-c", USE_UP_SIGNALS], timeout_s=60))
        wait = "until [ -e /tmp/used-up ]; do sleep 0.05; done"
        await sandbox.exec(["sh", "-c", wait], timeout_s=60)
        done = await sandbox.exec(["sh", "-c", "echo one; echo two >&2; touch /tmp/enough"], timeout_s=60)
        await using
        return done.output

    assert inside(work) == b"one\ntwo\n"


def test_output_is_truncated_beyond_its_limit_only(call):
    results = [call("printf", "%s", text, output_limit=5) for text in ("12345", "123456")]
    assert [(done.output, done.truncated) for done in results] == [(b"12345", False), (b"12345", True)]


def test_runs_in_the_work_folder_or_where_it_is_asked_to(call):
    assert (call("pwd").output, call("pwd", cwd="/tmp").output) == (b"/work\n", b"/tmp\n")


def test_stdin_reaches_the_program_and_has_an_end_and_need_not_be_read(call):
    data = os.urandom(300_000)
    assert call("cat", stdin=data).output == data
    assert call("cat").exit_code == 0
    assert call("true", stdin=bytes(1_000_000)).exit_code == 0


@pytest.mark.parametrize("size", [1_000, 1_000_000])
def test_stdin_that_is_unread_when_the_time_runs_out_leaves_no_complaint(call, runner, size):
    complaints = []
    loop = runner.get_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    assert call("sleep", "30", stdin=bytes(size), timeout_s=0.5).timed_out
    runner.run(asyncio.sleep(0.2))
    loop.set_exception_handler(None)
    assert complaints == []


def test_arguments_are_not_interpreted(call):
    odd = "a b;$(id)\n'\"\\*"
    assert call("printf", "%s", odd).output == odd.encode()


def test_environment_holds_only_what_was_given(call, monkeypatch):
    monkeypatch.setenv("SECRET_API_KEY", "leaked")
    lines = call("env", env={"GIVEN": "x y"}).output.decode().splitlines()
    names = {line.partition("=")[0] for line in lines}
    assert "GIVEN=x y" in lines
    assert names <= {"GIVEN", "PATH", "HOME", "TMPDIR", "LANG", "PWD", "HOSTNAME"}


def test_is_not_root_and_can_gain_no_capability(call):
    assert int(call("id", "-u").output) >= 10001
    assert call("id", "-G").output == b"10001\n"
    status = dict(
        line.split(":\t", 1)
        for line in call("cat", "/proc/self/status").output.decode().splitlines()
        if ":\t" in line
    )
    assert {status[key].strip() for key in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"


def test_nothing_else_is_writable(call):
    folders = ["/", "/usr", "/etc", "/usr/bin", "/dev", "/proc/sys/kernel", "/var/tmp"]
    script = 'for folder; do echo x > "$folder/planted" && echo "$folder"; done 2>/dev/null'
    assert call("sh", "-c", script, "sh", *folders).output == b""


def test_scratch_is_writable_and_executable_and_stays_for_the_next_command(call):
    folders = ["/work", "/agent", "/job", "/tmp"]
    write = 'for folder; do printf "#!/bin/sh\\necho ran" >"$folder/x" && chmod +x "$folder/x"; done'
    call("sh", "-c", write, "sh", *folders)
    assert call("sh", "-c", 'for folder; do "$folder/x"; done', "sh", *folders).output == b"ran\n" * 4


def test_host_files_are_hidden(call, tmp_path):
    (tmp_path / "secret").write_text("of the host")
    here = Path(__file__).resolve()
    for path in (tmp_path / "secret", here, "/var/run/docker.sock", "/run/docker.sock", "/etc/shadow"):
        assert call("cat", str(path)).exit_code != 0, path
    assert call("sh", "-c", "ls -A /root /home 2>/dev/null | grep -v :").output.strip() == b""


def test_host_processes_are_hidden_and_out_of_reach(call):
    assert b"pytest" not in call("sh", "-c", "cat /proc/[0-9]*/cmdline").output
    assert call("sh", "-c", f"kill -0 {os.getpid()} 2>&1").exit_code != 0


def test_there_is_no_network_but_loopback(python):
    done = python(
        "import socket\ns = socket.socket(); s.settimeout(3)\n"
        "try: s.connect(('192.0.2.1', 80))\nexcept OSError as e: print(type(e).__name__, e.errno)"
    )
    assert done.output.split()[-1] == b"101"
    done = python(
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(('localhost', s.getsockname()[1]), 3); print('reached')"
    )
    assert done.output == b"reached\n"


def test_other_socket_families_are_denied(python):
    families = {"netlink": 16, "packet": 17, "vsock": 40, "alg": 38, "bluetooth": 31}
    tries = "import socket\nfor f in {}:\n  try: print(socket.socket(f, 3))\n  except OSError as e: print(e.errno)"
    assert python(tries.format([*families.values()])).output == b"1\n" * len(families)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
def test_doors_to_the_kernel_are_shut(python, call):
    numbers = {"io_uring_setup": 425, "keyctl": 250, "bpf": 321, "userfaultfd": 323, "perf_event_open": 298}
    numbers |= {
        "ptrace": 101,
        "unshare": 272,
        "setns": 308,
        "mount": 165,
        "pivot_root": 155,
        "open_tree": 428,
    }
    done = call("python3", "-c", SYSCALLS, *map(str, numbers.values()))
    answers = [line.split()[1:] for line in done.output.decode().splitlines()]
    assert answers == [["-1", "1"]] * len(numbers)


def test_no_new_namespace_can_be_made(call):
    for flag in ("--user", "--net", "--mount", "--pid"):
        assert call("unshare", flag, "true").exit_code != 0


def test_threads_processes_and_git_work(call, python):
    done = python(
        "import threading, subprocess\nt = threading.Thread(target=lambda: print('thread', flush=True))\n"
        "t.start(); t.join()\n"
        "subprocess.run(['echo', 'process'])"
    )
    assert done.output == b"thread\nprocess\n"
    done = call(
        "sh", "-c", "mkdir r && cd r && git init -q && echo x > f && git add f && "
        "git -c user.name=a -c user.email=a@b commit -q -m m && git log --format=%s"
    )  # fmt: skip
    assert done.output == b"m\n"


def test_mount_is_shown_read_only(inside: Inside, tmp_path: Path):
    tmp_path.chmod(0o755)
    (tmp_path / "file").write_text("of the host")

    async def work(sandbox):
        read = await sandbox.exec(["cat", "/run/dgm/here/file"], timeout_s=60)
        written = await sandbox.exec(["sh", "-c", "echo x > /run/dgm/here/file"], timeout_s=60)
        return read.output, written.exit_code

    output, exit_code = inside(work, mounts=[Mount(tmp_path, "/run/dgm/here")])
    assert output == b"of the host"
    assert exit_code != 0
    assert (tmp_path / "file").read_text() == "of the host"


def test_a_shared_socket_answers(inside: Inside, tmp_path: Path):
    tmp_path.chmod(0o755)
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.fspath(tmp_path / "s"))
    (tmp_path / "s").chmod(0o666)
    server.listen()
    server.settimeout(20)

    def answer() -> None:
        connection, _ = server.accept()
        connection.sendall(b"hello")
        connection.close()

    thread = threading.Thread(target=answer)
    thread.start()
    code = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/dgm/s'); print(s.recv(9))"

    async def work(sandbox):
        return await sandbox.exec(["python3", "-c", code], timeout_s=60)

    done = inside(work, socket=SharedSocket(tmp_path / "s", "/run/dgm/s"))
    thread.join()
    server.close()
    assert done.output == b"b'hello'\n"


def test_two_sandboxes_do_not_see_each_other(inside: Inside, call):
    call("sh", "-c", "echo mine > /tmp/shared-name")

    async def work(sandbox):
        return await sandbox.exec(["find", "/work", "/agent", "/job", "/tmp", "-type", "f"], timeout_s=60)

    done = inside(work)
    assert (done.exit_code, done.output) == (0, b"")


def test_commands_of_one_sandbox_may_overlap(standing, runner):
    """Each waits until all have begun."""
    meet = "touch /tmp/met-$0; until [ $(ls /tmp/met-* | wc -l) = 3 ]; do sleep 0.02; done"

    async def together():
        return await asyncio.gather(
            *(standing.exec(["sh", "-c", meet, str(number)], timeout_s=60) for number in range(3))
        )

    assert [each.exit_code for each in runner.run(together())] == [0, 0, 0]


def test_the_image_has_pytest_and_pip(call, engine):
    if engine.name != "docker":
        pytest.skip("in bubblewrap Python's packages are the host's")
    write = "echo 'def test_sum(): assert 1 + 1 == 2' >/tmp/test_sum.py"
    done = call("sh", "-c", f"{write}; pytest -q -p no:cacheprovider /tmp/test_sum.py && pip --version")
    assert (done.exit_code, b"1 passed" in done.output) == (0, True), done.output
