"""What comes out of a sandbox: whose fault it is when nothing does."""

import asyncio

import pytest

from dgm.domain import Entry
from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Completed
from dgm.sandboxes import transfer


class Answers:
    """A sandbox that ends every command as told."""

    def __init__(self, *completed):
        self.completed = list(completed)
        self.asked = []

    async def exec(self, argv, **_):
        self.asked.append(argv)
        return self.completed.pop(0) if len(self.completed) > 1 else self.completed[0]


def got(*completed):
    return asyncio.run(transfer.get(Answers(*completed), "/work/repo", limit_bytes=1000, exclude=(".git",)))


@pytest.mark.parametrize(
    ("completed", "stage", "words"),
    [
        (Completed(67, b""), "get", "is a link now"),
        (Completed(66, b""), "get", "there is no folder"),
        (Completed(2, b""), "get", "cannot be read as the agent left it"),
        (Completed(137, b""), "get", "cannot be read as the agent left it"),
        (Completed(124, b"", timed_out=True, out_of_processor=True), "get", "60 s of processor time"),
        (Completed(0, b"", truncated=True), "size", "more than 1,000 bytes"),
    ],
)
def test_a_folder_that_cannot_be_read_is_the_agents_fault(completed, stage, words):
    with pytest.raises(AgentFault, match=words) as caught:
        got(completed)
    assert caught.value.stage == stage


class Gone(Answers):
    """A sandbox that is taken away while it is read."""

    async def exec(self, argv, **given):
        if self.asked:
            raise Infrastructure("the sandbox is gone")
        return await super().exec(argv, **given)


WHOLE = transfer.pack({"a.py": Entry(b"x"), "b.py": Entry(b"y")})
READ = {
    "whole": lambda sandbox: transfer.get(sandbox, "/work/repo", limit_bytes=1000, exclude=()),
    "named": lambda sandbox: transfer.get_files(sandbox, "/work/repo", ["a.py"], 1000),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize(
    "end", [Completed(0, WHOLE[:1024]), Completed(1, b"not a tar"), Completed(137, WHOLE)]
)
def test_a_broken_stream_is_the_agents_fault_only_while_the_sandbox_lives(read, end):
    with pytest.raises(AgentFault) as caught:
        asyncio.run(read(Answers(end)))
    assert caught.value.stage == "get"
    with pytest.raises(Infrastructure, match="gone"):
        asyncio.run(read(Gone(end)))


def test_a_listing_that_was_killed_is_not_believed():
    with pytest.raises(AgentFault, match="cannot be listed"):
        asyncio.run(transfer.list_files(Answers(Completed(137, b"1 a\0")), "/work/repo"))


def test_a_sandbox_without_tar_is_not_the_agents_fault():
    with pytest.raises(Infrastructure, match="no tar"):
        got(Completed(127, b""))


def test_a_slow_machine_is_not_the_agents_fault():
    with pytest.raises(Infrastructure, match="reading /work/repo took more than 240 s"):
        got(Completed(124, b"", timed_out=True))


def test_a_folder_that_was_closed_is_opened_and_read():
    files = {"a.py": Entry(b"x")}
    assert got(Completed(66, b""), Completed(0, transfer.pack(files))) == files


def test_names_are_excluded_literally():
    assert transfer.exclude_arguments([".git", "a*b"]) == ["!", "-name", ".git", "!", "-name", "a\\*b"]
