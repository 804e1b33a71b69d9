"""Which runs of a batch are started, resumed, waited for or left alone; functions stand in for processes."""

import asyncio
import signal
from pathlib import Path

import pytest

from dgm.archive.events import RunStopped
from dgm.archive.lock import WriterLock
from dgm.archive.run import Run
from dgm.batch import perform
from dgm.batch.perform import Batch, Stage, start_dgm
from dgm.batch.plan import plan_runs
from tests.support.runs.made import make_run

pytestmark = pytest.mark.slow
NAMES = ("s-0", "s-1", "s-2")


class FakeProcess:
    """A process that does something and ends with a code; one that ``waits`` ends after a signal."""

    def __init__(self, does, code, *, waits):
        self.does, self.code, self.signals = does, code, []
        self.stopped = asyncio.Event()
        if not waits:
            self.stopped.set()

    def send_signal(self, number):
        self.signals.append(number)
        self.stopped.set()

    async def wait(self):
        await self.stopped.wait()
        await asyncio.sleep(0)
        self.does()
        return self.code


class Lab:
    """A batch of three runs in which every process ends as the test says."""

    def __init__(self, archive):
        self.archive = archive
        self.started, self.events, self.processes, self.ends = [], [], {}, {}
        self.waits = set()
        runs = plan_runs("s", (None, {"model": "offline"}, {}), "0:3", {})
        self.batch = Batch(runs, archive, 2, ["ssh://far"], self.listen, self.start)

    def listen(self, run, state):
        self.events.append((run.name, state.stage, state.message))

    async def start(self, words, log):
        assert words[-2:] == ["--set", "engine=ssh://far"]
        name = words[2] if words[0] == "run" else Path(words[1]).name
        self.started.append((words[0], name))
        does, code = self.ends.get(name, (lambda: self.finish(name), 0))
        self.processes[name] = FakeProcess(does, code, waits=name in self.waits)
        return self.processes[name]

    def finish(self, name, reason="goal reached"):
        if (self.archive / name).exists():
            with Run.open(self.archive / name, write=True) as run:
                run.append(RunStopped(reason))
        else:
            settings = next(run.settings for run in self.batch.runs if run.name == name)
            make_run(self.archive / name, settings, ["+"], reason=reason)

    def perform(self):
        asyncio.run(self.batch.perform())

    @property
    def stages(self):
        return [self.batch.states[name].stage for name in NAMES]


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


def test_every_run_is_performed(lab):
    lab.perform()
    assert lab.started == [("run", name) for name in NAMES]
    assert lab.stages == [Stage.FINISHED] * 3
    assert lab.events[:2] == [("s-0", Stage.RUNNING, "begun"), ("s-1", Stage.RUNNING, "begun")]


def test_finished_runs_are_skipped_and_interrupted_ones_resumed_first(lab):
    lab.finish("s-0")
    lab.finish("s-2", reason="")
    lab.perform()
    assert lab.started == [("resume", "s-2"), ("run", "s-1")]
    assert lab.stages == [Stage.FINISHED] * 3


@pytest.mark.parametrize(
    ("does", "code", "stage", "message"),
    [
        ("log", 1, Stage.FAILED, "exit code 1: dgm: no room"),
        ("", -9, Stage.FAILED, "killed by signal 9"),
        ("budget spent", 3, Stage.SPENT, "budget spent"),
        ("goal reached", 1, Stage.FAILED, "exit code 1: "),
    ],
)
def test_a_crash_leaves_the_others(lab, does, code, stage, message):
    log = lab.archive / perform.LOGS / "s-0.log"
    log.parent.mkdir()
    log.write_text("x\n")

    def end():
        if does == "log":
            log.write_text("x\ndgm: no room\n\n")
        else:
            lab.finish("s-0", does)

    lab.ends["s-0"] = (end, code)
    lab.perform()
    assert lab.stages == [stage, Stage.FINISHED, Stage.FINISHED]
    assert message in lab.batch.states["s-0"].message


def test_stopping_asks_each_process_and_starts_nothing_more(lab):
    lab.waits = {"s-0", "s-1"}
    lab.ends = {name: (lambda name=name: lab.finish(name, "stopped"), 0) for name in lab.waits}

    async def stop_soon():
        performing = asyncio.create_task(lab.batch.perform())
        while len(lab.processes) < 2:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert lab.batch.stop()
        await performing
        assert not lab.batch.stop()

    asyncio.run(stop_soon())
    assert [process.signals for process in lab.processes.values()] == [[signal.SIGTERM]] * 2
    assert lab.stages == [Stage.INTERRUPTED, Stage.INTERRUPTED, Stage.WAITING]


def test_what_a_listener_raises_comes_out_when_all_runs_have_ended(lab):
    lab.waits = {"s-0"}
    ended = []
    lab.ends = {"s-0": (lambda: ended.append("s-0"), 0)}

    def listen(run, state):
        if run.name == "s-1":
            raise ZeroDivisionError

    lab.batch.listen = listen
    with pytest.raises(ZeroDivisionError):
        lab.perform()
    assert ended == ["s-0"]
    assert "s-2" not in lab.processes


def test_a_run_that_another_process_writes_is_waited_for_then_resumed(lab, monkeypatch):
    monkeypatch.setattr(perform, "POLL_S", 0.01)
    lab.finish("s-0", reason="")

    async def let_go_later():
        lock = WriterLock(lab.archive / "s-0" / "run.lock")
        performing = asyncio.create_task(lab.batch.perform())
        await asyncio.sleep(0.05)
        assert ("resume", "s-0") not in lab.started
        lock.close()
        await performing

    asyncio.run(let_go_later())
    assert ("resume", "s-0") in lab.started
    assert lab.stages == [Stage.FINISHED] * 3


@pytest.mark.starts_processes
def test_a_process_writes_its_log(tmp_path):
    async def run(words):
        return await (await start_dgm(words, tmp_path / ".batch" / "log")).wait()

    assert asyncio.run(run(["--version"])) == 0
    assert (tmp_path / ".batch" / "log").read_text().startswith("dgm ")
