"""Which runs of a sweep are started, resumed, waited for or left alone; processes are stood in for by functions."""

import asyncio
import os

import pytest

from dgm.archive.events import RunStopped
from dgm.archive.lock import WriterLock
from dgm.archive.run import Run
from dgm.cli.sweep_progress import SweepProgress
from dgm.errors import ArchiveBusy
from dgm.experiments.children import read_last_line, start_dgm
from dgm.experiments.performing import Sweep, SweepEvent, SweepEventKind
from dgm.experiments.run_state import RunStage
from dgm.experiments.sweep_file import read_sweep
from dgm.experiments.sweep_folder import SweepFolder
from dgm.experiments.sweep_plan import plan_runs
from dgm.sandboxes.engine_address import use_engine
from dgm.show.sweep_rows import outcome_text
from tests.support.runs.made import make_run

pytestmark = pytest.mark.slow


class Ending:
    """A process that does something to its run's folder and ends with a code, once it is let."""

    def __init__(self, does, code, let=None):
        self.does, self.code, self.let, self.stops = does, code, let, 0

    def stop(self):
        self.stops += 1
        if self.let:
            self.let.set()

    async def wait(self):
        if self.let:
            await self.let.wait()
        await asyncio.sleep(0)
        self.does()
        return self.code


class Lab:
    """A sweep of three runs in which every process ends as the test says."""

    def __init__(self, archive, at_once=2, max_usd=None, extra=""):
        file = archive / "s.toml"
        file.write_text(f'[sweep]\nseeds = 3\n[base]\nmodel = "offline"\nbudget.usd = 2\n{extra}')
        self.folder = SweepFolder(archive, "s")
        self.folder.folder.mkdir(exist_ok=True)
        self.told = []
        self.started = []
        self.most = 0
        self.ends = {}
        self.lets = {}
        self.children = {}
        runs = plan_runs(read_sweep(file))
        self.sweep = Sweep(runs, self.folder, at_once, max_usd, self.told.append, self._start)
        self.sweep.look()

    async def _start(self, words, log):
        name = words[2] if words[0] == "run" else os.path.basename(words[1])  # noqa: PTH119
        self.started.append((words[0], name))
        self.most = max(self.most, len(self.sweep.running))
        does, code = self.ends.get(name, (lambda: self.finish(name), 0))
        child = self.children[name] = Ending(does, code, self.lets.get(name))
        return child

    def finish(self, name, reason="goal reached", **more):
        folder = self.folder.run(name)
        if not folder.exists():
            settings = next(run.settings for run in self.sweep.runs if run.name == name)
            make_run(folder, settings, ["+"], reason=reason, **more)
            return
        with Run.open(folder, write=True) as run:
            run.append(RunStopped(reason))

    def perform(self):
        asyncio.run(self.sweep.perform())

    def stages(self):
        return [self.sweep.standings[run.name].stage for run in self.sweep.runs]


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


def test_every_run_is_performed_and_no_more_at_once_than_asked(lab):
    lab.perform()
    assert lab.started == [("run", "s-0"), ("run", "s-1"), ("run", "s-2")]
    assert lab.stages() == [RunStage.FINISHED] * 3
    assert lab.most == 2
    assert [told.moment for told in lab.told].count(SweepEventKind.ENDED) == 3


def test_finished_runs_are_skipped_and_interrupted_ones_resumed_first(lab):
    lab.finish("s-0")
    lab.finish("s-2", reason="")
    lab.sweep.look()
    lab.perform()
    assert lab.started == [("resume", "s-2"), ("run", "s-1")]
    assert lab.stages() == [RunStage.FINISHED] * 3


def test_a_crash_leaves_the_others_and_is_told_once(lab):
    lab.ends["s-0"] = (lambda: lab.folder.log("s-0").write_text("x\ndgm: no room\n\n"), 1)
    lab.perform()
    assert lab.started == [("run", "s-0"), ("run", "s-1"), ("run", "s-2")]
    assert lab.sweep.failures == {"s-0": "exit code 1: dgm: no room"}
    assert lab.stages() == [RunStage.TO_COME, RunStage.FINISHED, RunStage.FINISHED]
    assert "1 failed" in outcome_text(lab.sweep)


def test_a_killed_process_is_told_by_its_signal(lab):
    lab.ends["s-1"] = (lambda: lab.finish("s-1", reason=""), -9)
    lab.perform()
    assert lab.sweep.failures == {"s-1": "killed by signal 9"}


def test_a_run_whose_budget_is_spent_is_over_and_no_failure(lab):
    lab.ends["s-1"] = (lambda: lab.finish("s-1", reason="budget spent"), 3)
    lab.perform()
    assert not lab.sweep.failures
    assert lab.stages() == [RunStage.FINISHED, RunStage.SPENT, RunStage.FINISHED]


def test_no_run_starts_that_the_money_may_not_cover(tmp_path):
    lab = Lab(tmp_path, at_once=3, max_usd=4.5)
    lab.ends["s-0"] = (lambda: lab.finish("s-0", usd=1.0), 0)
    lab.ends["s-1"] = (lambda: lab.finish("s-1", usd=1.0), 0)
    lab.perform()
    # Two at first, of at most 2 USD each; 1 USD each was spent, which leaves 2.5 USD: the third fits.
    assert lab.most == 2
    assert lab.stages() == [RunStage.FINISHED] * 3


def test_what_the_money_has_no_room_for_stays_and_is_said(tmp_path):
    lab = Lab(tmp_path, max_usd=4.5)
    for name in ("s-0", "s-1"):
        lab.ends[name] = (lambda name=name: lab.finish(name, usd=2.0), 0)
    lab.perform()
    assert lab.stages() == [RunStage.FINISHED, RunStage.FINISHED, RunStage.TO_COME]
    assert [run.name for run in lab.sweep.unaffordable] == ["s-2"]
    assert "max_usd = 4.50 of the sweep has no room for 1 more run" in outcome_text(lab.sweep)


def test_stopping_asks_each_process_and_starts_nothing_more(lab):
    async def stop_soon():
        lab.lets = {"s-0": asyncio.Event(), "s-1": asyncio.Event()}
        for name in lab.lets:
            lab.ends[name] = (lambda name=name: lab.finish(name, reason="stopped"), 0)
        performing = asyncio.create_task(lab.sweep.perform())
        while len(lab.children) < 2:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        lab.sweep.stop()
        await performing

    asyncio.run(stop_soon())
    assert [child.stops for child in lab.children.values()] == [1, 1]
    assert lab.stages() == [RunStage.INTERRUPTED, RunStage.INTERRUPTED, RunStage.TO_COME]
    assert not lab.sweep.failures


def test_what_a_listener_raises_comes_out_when_all_runs_have_ended(lab):
    async def fail_at_the_second():
        lab.lets = {"s-0": asyncio.Event(), "s-1": asyncio.Event()}
        ended = []
        for name in lab.lets:
            lab.ends[name] = (lambda name=name: ended.append(name), 0)

        def listen(told):
            if told.run.name == "s-1":
                raise ZeroDivisionError

        lab.sweep.listen = listen
        with pytest.raises(ZeroDivisionError):
            await lab.sweep.perform()
        assert set(ended) == {"s-0", "s-1"}

    asyncio.run(fail_at_the_second())
    assert [child.stops for child in lab.children.values()] == [1, 1]
    assert "s-2" not in lab.children


def test_a_run_that_another_process_writes_is_waited_for_then_resumed(lab, monkeypatch):
    monkeypatch.setattr("dgm.experiments.children.LOOK_S", 0.01)
    lab.finish("s-0", reason="")

    async def let_go_later():
        lock = WriterLock(lab.folder.run("s-0") / "events.lock")
        lab.sweep.look()
        performing = asyncio.create_task(lab.sweep.perform())
        while not any(told.moment is SweepEventKind.FOUND for told in lab.told):
            await asyncio.sleep(0.01)
        assert ("resume", "s-0") not in lab.started
        lock.close()
        await performing

    asyncio.run(let_go_later())
    assert ("resume", "s-0") in lab.started
    assert lab.stages() == [RunStage.FINISHED] * 3


def test_the_same_sweep_is_not_performed_twice_at_once(lab):
    lock = lab.folder.lock()
    with pytest.raises(ArchiveBusy, match=str(os.getpid())):
        lab.folder.lock()
    lock.close()


def test_what_the_live_table_reads_decides_nothing(lab):
    shown = SweepProgress("s", lab.sweep.runs, quiet=False)
    shown.attach(lab.sweep)
    shown.live = object()

    def ended_but_still_among_the_running(told):
        lab.told.append(told)
        shown.told(told)

    lab.sweep.listen = ended_but_still_among_the_running
    lab.perform()
    shown.close()
    assert [told for told in lab.told if told.moment is SweepEventKind.RESUMED] == []
    assert lab.stages() == [RunStage.FINISHED] * 3
    assert isinstance(lab.told[0], SweepEvent)


@pytest.mark.starts_processes
def test_a_real_process_writes_its_log(tmp_path):
    async def run(words):
        child = await start_dgm(words, tmp_path / "log")
        return await child.wait()

    assert asyncio.run(run(["--version"])) == 0
    assert read_last_line(tmp_path / "log").startswith("dgm ")


@pytest.mark.starts_processes
def test_a_process_uses_the_engine_that_the_sweep_was_given(tmp_path, monkeypatch):
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    words = ["run", "--model", "offline", "--sandbox", "bubblewrap"]

    async def run():
        with use_engine("ssh://me@far", "--engine"):
            child = await start_dgm(words, tmp_path / "log")
        return await child.wait()

    assert asyncio.run(run()) == 2
    assert read_last_line(tmp_path / "log").startswith(
        "dgm: --engine=ssh://me@far: the sandbox is bubblewrap"
    )
