"""What goes into a sandbox and comes back out of it, in both engines."""

import asyncio
import contextlib
import os
import stat

import pytest

from dgm.domain import Entry
from dgm.errors import AgentFault, Infrastructure
from dgm.worker.leaving import read_large
from tests.docker.conftest import Inside

MB = 1024 * 1024


def round_trip(files, script="true", *, limit_bytes=MB, exclude=(), folder="/work/there"):
    """A piece of work: puts files, runs a script beside them, gets the folder back."""

    async def work(sandbox):
        await sandbox.put(files, folder)
        done = await sandbox.exec(["sh", "-c", script], timeout_s=30, cwd=folder)
        assert done.exit_code == 0, done.output
        return await sandbox.get(folder, limit_bytes=limit_bytes, exclude=exclude)

    return work


def test_files_with_odd_names_modes_and_links_survive(inside: Inside):
    names = [
        "new\nline",
        "escape\x1b[31m",
        "not-utf8-\udcff\udcfe",
        "ünïcode",
        " space ",
        "-dash",
        "*",
        "'\"\\",
        "x" * 240,
    ]
    files = {
        "plain.txt": Entry(b"text\n"),
        "bin/run": Entry(b"#!/bin/sh\n", 0o100755),
        "empty": Entry(b""),
        "deep/er/still/binary": Entry(bytes(range(256)) * 100),
        "link": Entry(b"plain.txt", 0o120000),
        "dangling": Entry(b"../../nowhere", 0o120000),
        "/".join(["folder" * 8] * 12) + "/file": Entry(b"deep"),
        **{f"sub/{name}": Entry(name.encode("utf-8", "surrogateescape")) for name in names},
        **{f"d{number % 40}/f{number}": Entry(os.urandom(500)) for number in range(2000)},
    }
    assert inside(round_trip(files, limit_bytes=4 * MB)) == files
    assert inside(round_trip({})) == {}


def test_files_belong_to_the_sandboxs_user(inside: Inside):
    script = 'test "$(stat -c %u:%g f)" = "$(id -u):10001" && echo changed > f'
    assert inside(round_trip({"f": Entry(b"x")}, script)) == {"f": Entry(b"changed\n")}


def test_put_replaces_what_is_there(inside: Inside):
    async def work(sandbox):
        await sandbox.put({"f": Entry(b"old"), "link": Entry(b"f", 0o120000)}, "/work")
        await sandbox.put({"f": Entry(b"new"), "link": Entry(b"a file now")}, "/work")
        return await sandbox.get("/work", limit_bytes=MB)

    assert inside(work) == {"f": Entry(b"new"), "link": Entry(b"a file now")}


def test_put_through_a_planted_link_reaches_nothing(inside: Inside, tmp_path):
    tmp_path.chmod(0o777)

    async def work(sandbox):
        await sandbox.exec(["ln", "-s", os.fspath(tmp_path), "/work/out"], timeout_s=10)
        with contextlib.suppress(AgentFault):
            await sandbox.put({"out/planted": Entry(b"x")}, "/work")

    inside(work)
    assert list(tmp_path.iterdir()) == []


def test_links_are_not_followed_and_what_is_no_file_is_left_out(inside: Inside):
    bind = "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
    script = (
        "ln -s /etc/passwd passwd; ln -s /etc folder; ln -s / root; ln -s . loop; ln a b; "
        f'mkfifo pipe; mkdir empty; python3 -c "{bind}"'
    )
    assert inside(round_trip({"a": Entry(b"x")}, script)) == {
        "passwd": Entry(b"/etc/passwd", 0o120000),
        "folder": Entry(b"/etc", 0o120000),
        "root": Entry(b"/", 0o120000),
        "loop": Entry(b".", 0o120000),
        "a": Entry(b"x"),
        "b": Entry(b"x"),
    }


def test_excluded_entries_are_left_out_at_the_top_only(inside: Inside):
    files = {
        ".git/config": Entry(b"x"),
        "sub/.git/config": Entry(b"y"),
        "f.git": Entry(b"z"),
        "*": Entry(b"s"),
    }
    got = inside(round_trip(files, exclude=[".git", "*"]))
    assert set(got) == {"sub/.git/config", "f.git"}


def test_any_execute_bit_of_the_owner_counts_and_no_other_mode_does(inside: Inside):
    script = "touch a b c; chmod 4711 a; chmod 666 b; chmod 611 c"
    modes = {name: stat.S_IMODE(entry.mode) for name, entry in inside(round_trip({}, script)).items()}
    assert modes == {"a": 0o755, "b": 0o644, "c": 0o644}


def test_files_closed_to_their_owner_come_back_too(inside: Inside):
    script = "mkdir d; echo x > d/f; echo y > g; chmod 000 g d/f d"
    assert inside(round_trip({}, script)) == {"d/f": Entry(b"x\n"), "g": Entry(b"y\n")}


def test_content_up_to_the_limit_is_taken_and_more_is_the_agents_fault(inside: Inside):
    async def work(sandbox):
        await sandbox.exec(["sh", "-c", "head -c 1M /dev/zero > big"], timeout_s=30)
        got = await sandbox.get("/work", limit_bytes=MB)
        assert len(got["big"].data) == MB
        stages = []
        for script in ("echo 1 >>big", "truncate -s 1T big"):
            await sandbox.exec(["sh", "-c", script], timeout_s=30)
            with pytest.raises(AgentFault) as caught:
                await sandbox.get("/work", limit_bytes=MB)
            stages.append(caught.value.stage)
        with pytest.raises(AgentFault) as caught:
            await sandbox.get("/work/nowhere", limit_bytes=MB)
        return [*stages, caught.value.stage]

    assert inside(work) == ["size", "size", "get"]


def test_too_many_files_are_the_agents_fault(inside: Inside):
    script = "python3 -c \"for i in range(20001): open(f'f{i}', 'w').close()\""
    with pytest.raises(AgentFault) as caught:
        inside(round_trip({}, script), disk_mb=256)
    assert caught.value.stage == "size"


def test_files_that_do_not_fit_are_refused(inside: Inside):
    with pytest.raises(AgentFault) as caught:
        inside(round_trip({"big": Entry(bytes(40 * MB))}), disk_mb=16)
    assert caught.value.stage == "put"


def test_reading_that_is_broken_off_is_nobodys_fault(inside: Inside):
    async def work(sandbox):
        await sandbox.exec(["sh", "-c", "head -c 4M /dev/zero > /work/f"], timeout_s=60)
        for after_s in (0.01, 0.05):
            reading = asyncio.create_task(sandbox.get("/work", limit_bytes=5 * MB))
            await asyncio.sleep(after_s)
            reading.cancel()
            await asyncio.wait([reading])
            assert reading.cancelled() or len(reading.result()) == 1
        return await sandbox.get("/work", limit_bytes=5 * MB)

    assert len(inside(work)["f"].data) == 4 * MB


def test_a_closed_sandbox_takes_and_gives_nothing(inside: Inside, runner):
    async def keep(sandbox):
        return sandbox

    closed = inside(keep)
    with pytest.raises(Infrastructure, match="closed"):
        runner.run(closed.put({"f": Entry(b"x")}, "/work"))
    with pytest.raises(Infrastructure, match="closed"):
        runner.run(closed.get("/work", limit_bytes=MB))


def test_the_fix_is_read_where_a_build_is_too_large(inside: Inside):
    """The folder is beyond its limit: tracked and small files come, what git ignores and the artefact do not."""
    before = {"code.py": Entry(b"1\n"), ".gitignore": Entry(b"*.o\n")}
    script = "echo 2 >code.py; echo n >new.py; touch a.o; head -c 20000000 /dev/zero >big; ln -s code.py link"

    async def work(sandbox):
        with pytest.raises(AgentFault, match="more than"):
            await round_trip(before, script)(sandbox)
        return await read_large(sandbox, "/work/there", before, (), MB)

    files, left_out = inside(work)
    assert files == {
        **before,
        "code.py": Entry(b"2\n"),
        "new.py": Entry(b"n\n"),
        "link": Entry(b"code.py", 0o120000),
    }
    assert left_out == {"big": 20_000_000}
