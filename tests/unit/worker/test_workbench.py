"""How an agent's program ended, as the workbench tells it."""

import asyncio
import json
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from dgm.config import LimitSettings
from dgm.domain import Entry
from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Completed, InImage, Job, JobKind, Mount
from dgm.worker.supplies import Supplies, Supply
from tests.support.agent_place import IDLE, SOLVE, SOURCE, Place


def solve(place):
    return asyncio.run(place.bench(LimitSettings()).work(SOLVE))


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
    work = solve(Place(completed))
    assert work.completed.timed_out is late
    assert work.patch == b""


class ImagePlace(Place):
    """A sandbox whose workspace stood in its image: the agent ends well, then git answers as told."""

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
            self.launched = json.loads(given["stdin"])
            return self.completed
        self.order.append("compare")
        assert argv[-3:-1] == ["/testbed", "/base.git"]
        return self.answer


def in_image(place, patch_bytes=100):
    bench = place.bench(LimitSettings(patch_bytes=patch_bytes))
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


def test_an_agents_environment_is_completed_before_it_is_started():
    place = ImagePlace(Completed(0, b""))
    in_image(place)
    *start, told = place.launched["command"][:5]
    assert start == ["python3", "-I", "-S", "/job/start.py"]
    assert json.loads(told) == {"kind": "solve", "env": {}, "runtime": "", "beside": False}
    assert {"job/start.py", "job/python/sitecustomize.py"} <= place.files.keys()


@pytest.mark.parametrize(
    ("answer", "error", "problem"),
    [
        (Completed(0, b"x" * 101), AgentFault, "more than 100 bytes"),
        (Completed(0, b"x" * 100, truncated=True), AgentFault, "more than 100 bytes"),
        (Completed(71, b'error: open("a"): no room\n'), AgentFault, "cannot be compared: error: open"),
        (Completed(72, b"diff"), AgentFault, "git failed on the way"),
        (Completed(124, b"", timed_out=True), Infrastructure, "took more than 720 s"),
        (
            Completed(124, b"", timed_out=True, out_of_processor=True),
            AgentFault,
            "git ran out of processor time",
        ),
        (Completed(137, b"", out_of_memory=True), AgentFault, "git ran out of memory"),
        (Completed(70, b"fatal: no HEAD"), Infrastructure, "/base.git cannot be used: fatal: no HEAD"),
        (Completed(127, b"sh: git: not found"), Infrastructure, "/base.git cannot be used"),
        (Completed(1, b""), Infrastructure, "cannot compare /testbed with /base.git: exit 1"),
    ],
)
def test_a_comparison_that_fails_is_put_down_to_whom_it_is_for(answer, error, problem):
    with pytest.raises(error, match=problem):
        in_image(ImagePlace(answer))


class Packages(Supplies):
    """Packages in one folder, for every image."""

    async def supply(self, spec):
        return Supply((Mount(Path("/host"), "/packages"),), "/packages")


class CheckPlace(Place):
    """Sandboxes in which an agent's self-check ends as told, time by time; it notes how each was run."""

    def __init__(self, *ends, idle=IDLE):
        super().__init__()
        self.ends, self.ran, self.idle = list(ends), [], idle

    async def put(self, files, target):
        assert (files, target) == (SOURCE, "/agent") or (list(files), target) == (["job/start.py"], "/")

    async def exec(self, argv, **given):
        if argv[:2] == ["sh", "-c"]:
            return self.idle
        self.ran.append((list(argv), given))
        return self.ends.pop(0)

    def check(self, **limits):
        return asyncio.run(self.bench(LimitSettings(**limits), supplies=Packages()).check(SOURCE))


BY_CLOCK = Completed(124, b"", timed_out=True, processor_s=0.1)
BURNT = Completed(124, b"", timed_out=True, out_of_processor=True, processor_s=20.0)
GOOD = Completed(0, b"ok")


def test_a_self_check_runs_with_the_packages_and_no_model():
    place = CheckPlace(Completed(1, b"no"))
    assert place.check(check_s=20).output == b"no"
    ((argv, given),) = place.ran
    assert (argv[0], argv[-1]) == ("python3", "check")
    assert (given["timeout_s"], given["processor_s"], given["cwd"]) == (60, 20, "/agent")
    assert given["env"]["PYTHONPATH"] == "/packages"


@pytest.mark.parametrize(
    ("ends", "last", "waited"),
    [
        ([BURNT], BURNT, [30]),
        ([BY_CLOCK, GOOD], GOOD, [30, 60]),
        ([BY_CLOCK, BURNT], BURNT, [30, 60]),
        ([BY_CLOCK, BY_CLOCK], BY_CLOCK, [30, 60]),
    ],
)
def test_a_self_check_that_only_the_clock_ended_is_tried_again_with_more_time(ends, last, waited):
    place = CheckPlace(*ends)
    assert place.check(check_s=1) is last
    assert [given["timeout_s"] for _, given in place.ran] == waited


def test_on_a_machine_that_does_not_respond_no_agent_is_to_blame():
    place = CheckPlace(BY_CLOCK, BY_CLOCK, idle=Completed(124, b"", timed_out=True))
    with pytest.raises(Infrastructure, match="the machine does not respond"):
        place.check(check_s=1)
    stuck = Place(Completed(124, b"", timed_out=True))
    stuck.idle = stuck.completed
    with pytest.raises(Infrastructure, match="the machine does not respond"):
        solve(stuck)


NO_FORK = Completed(1, b"BlockingIOError: [Errno 11] Resource temporarily unavailable\n")


@pytest.mark.parametrize("machine", [Completed(2, b"sh: Cannot fork"), GOOD])
def test_an_agent_is_to_blame_that_starts_no_process_where_others_can(machine):
    place = CheckPlace(NO_FORK, idle=machine)
    full = Place(NO_FORK)
    full.idle = machine
    if machine is GOOD:
        assert place.check(check_s=1) is NO_FORK
        assert solve(full).completed.exit_code == 1
        return
    with pytest.raises(Infrastructure, match="starts no more processes"):
        place.check(check_s=1)
    with pytest.raises(Infrastructure, match="starts no more processes"):
        solve(full)


class DryPlace(CheckPlace):
    """Sandboxes in which an agent's program ends as told."""

    async def put(self, files, target):
        pass


@pytest.mark.starts_processes
def test_a_dry_run_has_the_time_of_a_self_check():
    place = DryPlace(BY_CLOCK, GOOD)
    job = Job(JobKind.IMPROVE, "p", SOURCE, SOURCE, "python", "/work/agent", 6.0, processor_s=15.0)
    assert asyncio.run(place.bench(LimitSettings(), supplies=Packages()).work(job)).completed == GOOD
    jobs = [given for _, given in place.ran if "stdin" in given]
    limits = [json.loads(given["stdin"])["time_limit_s"] for given in jobs]
    assert (limits, {given["processor_s"] for given in jobs}) == ([45.0, 90.0], {15.0})


def test_a_source_without_a_contract_is_not_checked():
    bench = Place().bench(LimitSettings())
    with pytest.raises(AgentFault) as caught:
        asyncio.run(bench.check({"a.py": Entry(b"")}))
    assert caught.value.stage == "contract"


def test_why_an_agent_was_refused_is_told():
    place = Place(Completed(1, b""))
    place.refused = {"context_length_exceeded": None}
    assert solve(place).refused == ("context_length_exceeded",)


def test_evidence_that_cannot_be_laid_out_makes_one_expansion_fail_and_not_the_search(tmp_path):
    place = Place(Completed(0, b""))
    place.folder = tmp_path / "gateway"
    bench = place.bench(LimitSettings())
    evidence = {"a": Entry(b"1"), "a/b": Entry(b"2")}
    job = Job(JobKind.IMPROVE, "p", SOURCE, SOURCE, "python", "/work/repo", 6.0, evidence=evidence)
    with pytest.raises(AgentFault) as caught:
        asyncio.run(bench.work(job))
    assert caught.value.stage == "evidence"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("completed", "cause"),
    [
        (
            Completed(69, b"there is no /run/dgm/gateway.sock in the sandbox\n"),
            "there is no /run/dgm/gateway.sock",
        ),
        (Completed(0, b""), "exit 0, no output"),
        (Completed(127, b"sh: python3: not found\n"), "python3: not found"),
    ],
)
def test_a_sandbox_that_does_not_reach_the_gateway_gives_no_verdict(completed, cause):
    place = Place(completed)
    place.reached = False
    with pytest.raises(Infrastructure, match=f"does not reach the gateway: .*{cause}"):
        solve(place)


class Lacking(Place):
    """A gateway whose lease lacks an answer at the end of each job, and a model that answers others or not."""

    def __init__(self, answers, **lease):
        super().__init__(Completed(1, b""))
        self.caller, self.model_answers, self.lent, self.closed = self, list(answers), 0, []
        self.blameless, self.lost_s = lease.get("blameless", ""), lease.get("lost_s", 0.0)
        self.open_call = lease.get("open_call", "")

    @contextmanager
    def lend(self, action, role, limits=None, heard=None, kind=""):
        self.lent += 1
        heard.add(self.lent)
        yield self

    async def wait_for_calls(self, limit_s):
        return self.open_call

    async def answers(self, lease):
        return self.model_answers.pop(0)

    async def refuse_open_calls(self, lease, words):
        self.closed.append(words)


@pytest.mark.parametrize(
    "lease", [{"open_call": "it had not answered"}, {"blameless": "all 2 model calls were refused"}]
)
def test_an_agent_that_ends_without_its_answers_is_graded_the_second_time(lease):
    place = Lacking([True, True], **lease)
    lacking = f"{next(iter(lease.values()))}; 2 times, while the model answered others"
    assert solve(place).own_failure == lacking
    assert (place.lent, place.closed) == (2, [lacking])


def test_calls_that_waited_for_ever_are_the_agents_where_the_model_answers_others():
    place = Lacking([True, True], lost_s=1e6)
    place.completed = Completed(124, b"", timed_out=True, seconds=7.0)
    assert "waited 1,000,000 s" in solve(place).own_failure


@pytest.mark.parametrize(("answers", "lent"), [([False], 1), ([True, False], 2)])
def test_what_befalls_a_neutral_question_too_is_no_agents_fault(answers, lent):
    place = Lacking(answers, open_call="it had not answered")
    with pytest.raises(Infrastructure, match=r"^it had not answered$"):
        solve(place)
    assert (place.lent, place.closed) == (lent, [])
