"""How an agent's program ended, as the workbench tells it."""

import asyncio
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from dgm.config import LimitSettings
from dgm.domain import ActionId, Entry
from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Completed, InImage, Job, JobKind, Mount, SandboxSpec
from dgm.search.workbench import SandboxWorkbench

SOURCE = {"agent.toml": Entry(b'[agent]\ncommand = ["run"]\ncheck = ["check"]\n')}


class Place:
    """A sandbox and a gateway in one: the agent leaves everything as it was and ends as told."""

    action, lost_s, blameless = 1, 0.0, ""
    folder, socket_name = Path("/nowhere"), "gateway.sock"
    token, failure, conversation, calls, refused = "dgm-0", None, (), 0, ()

    def __init__(self, completed):
        self.completed = completed

    @contextmanager
    def lend(self, action, role, heard=None):
        yield self

    @asynccontextmanager
    async def open(self, spec):
        yield self

    async def put(self, files, target):
        pass

    async def exec(self, argv, **_):
        return self.completed

    async def outlive(self, limit_s):
        pass

    async def get(self, source, **_):
        return {"a.py": Entry(b"1")}


@pytest.mark.parametrize(
    ("completed", "late"),
    [
        (Completed(124, b"", seconds=6.1), True),
        (Completed(124, b"", seconds=2.0), False),
        (Completed(1, b"", seconds=7.0), False),
        (Completed(124, b"", timed_out=True, seconds=21.0), True),
    ],
)
def test_a_time_limit_that_the_launcher_enforced_is_a_time_out(completed, late):
    place = Place(completed)
    bench = SandboxWorkbench(place.open, place, ActionId(1), SandboxSpec("python"), LimitSettings())
    job = Job(JobKind.SOLVE, "p", SOURCE, {"a.py": Entry(b"1")}, "python", "/work/repo", 6.0)
    work = asyncio.run(bench.work(job))
    assert work.completed.timed_out is late
    assert work.patch == b""


class ImagePlace(Place):
    """A sandbox whose workspace stood in its image: the agent ends well, then git answers as told."""

    action, lost_s, blameless = 1, 0.0, ""

    def __init__(self, answer):
        super().__init__(Completed(0, b""))
        self.answer, self.spec, self.files, self.order = answer, None, {}, []

    @asynccontextmanager
    async def open(self, spec):
        self.spec = spec
        yield self

    async def put(self, files, target):
        self.files = files

    async def halt(self):
        self.order.append("halt")

    async def exec(self, argv, **given):
        if "compare" not in argv:
            self.order.append("agent")
            return self.completed
        self.order.append("compare")
        assert argv[-2:] == ["/testbed", "/base.git"]
        return self.answer


def in_image(place, patch_bytes=100):
    bench = SandboxWorkbench(
        place.open, place, ActionId(1), SandboxSpec("python"), LimitSettings(patch_bytes=patch_bytes)
    )
    job = Job(JobKind.SOLVE, "p", SOURCE, InImage("/src", "/base.git"), "docker:x", "/testbed", 6.0)
    return asyncio.run(bench.work(job))


def test_a_workspace_in_an_image_is_neither_put_in_nor_read_back():
    place = ImagePlace(Completed(0, b"diff --git a/x b/x\n"))
    work = in_image(place)
    assert (work.workspace, work.patch) == ({}, b"diff --git a/x b/x\n")
    assert place.spec.filled == {"/testbed": "/src"}
    assert place.spec.image == "docker:x"
    assert not any(name.startswith("testbed") for name in place.files)
    assert place.order == ["agent", "halt", "compare"]


@pytest.mark.parametrize(
    ("answer", "error", "problem"),
    [
        (Completed(0, b"x" * 101), AgentFault, "more than 100 bytes"),
        (Completed(0, b"x" * 100, truncated=True), AgentFault, "more than 100 bytes"),
        (Completed(71, b'error: open("a"): no room\n'), AgentFault, "cannot be compared: error: open"),
        (Completed(72, b"diff"), AgentFault, "git failed on the way"),
        (Completed(124, b"", timed_out=True), AgentFault, "git ran out of time"),
        (Completed(137, b"", out_of_memory=True), AgentFault, "git ran out of memory"),
        (Completed(70, b"fatal: no HEAD"), Infrastructure, "/base.git cannot be used: fatal: no HEAD"),
        (Completed(127, b"sh: git: not found"), Infrastructure, "/base.git cannot be used"),
        (Completed(1, b""), Infrastructure, "cannot compare /testbed with /base.git: exit 1"),
    ],
)
def test_a_comparison_that_fails_is_put_down_to_whom_it_is_for(answer, error, problem):
    with pytest.raises(error, match=problem):
        in_image(ImagePlace(answer))


class CheckPlace(Place):
    """A sandbox in which an agent's self-check is run."""

    async def put(self, files, target):
        assert (files, target) == (SOURCE, "/agent")

    async def exec(self, argv, **given):
        self.argv, self.given = list(argv), given
        return self.completed


def test_a_self_check_runs_with_the_packages_and_no_model():
    place = CheckPlace(Completed(1, b"no"))
    spec = SandboxSpec("python", mounts=(Mount(Path("/host"), "/packages"),))
    bench = SandboxWorkbench(place.open, place, ActionId(1), spec, LimitSettings(check_s=3))
    assert asyncio.run(bench.check(SOURCE)) is place.completed
    assert place.argv == ["check"]
    assert (place.given["timeout_s"], place.given["cwd"]) == (3, "/agent")
    assert place.given["env"]["PYTHONPATH"] == "/packages"


def test_a_source_without_a_contract_is_not_checked():
    bench = SandboxWorkbench(None, None, ActionId(1), SandboxSpec("python"), LimitSettings())
    with pytest.raises(AgentFault) as caught:
        asyncio.run(bench.check({"a.py": Entry(b"")}))
    assert caught.value.stage == "contract"


def test_why_an_agent_was_refused_is_told():
    place = Place(Completed(1, b""))
    place.refused = {"context_length_exceeded": None}
    bench = SandboxWorkbench(place.open, place, ActionId(1), SandboxSpec("python"), LimitSettings())
    job = Job(JobKind.SOLVE, "p", SOURCE, {"a.py": Entry(b"1")}, "python", "/work/repo", 6.0)
    assert asyncio.run(bench.work(job)).refused == ("context_length_exceeded",)


def test_evidence_that_cannot_be_laid_out_makes_one_expansion_fail_and_not_the_search(tmp_path):
    place = Place(Completed(0, b""))
    place.folder = tmp_path / "gateway"
    bench = SandboxWorkbench(
        place.open, place, ActionId(1), SandboxSpec("python"), LimitSettings(), evidence_shown=True
    )
    evidence = {"a": Entry(b"1"), "a/b": Entry(b"2")}
    job = Job(JobKind.IMPROVE, "p", SOURCE, SOURCE, "python", "/work/repo", 6.0, evidence=evidence)
    with pytest.raises(AgentFault) as caught:
        asyncio.run(bench.work(job))
    assert caught.value.stage == "evidence"
    assert list(tmp_path.iterdir()) == []
