"""What is lost is named in its place, and everything else is there."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.worker import WorkerFailed

from dgm.analysis.accounts import account_of
from dgm.analysis.best import best_of
from dgm.archive.events import ActionStarted, AgentBorn, ModelCalled, TaskGraded
from dgm.archive.run import Run
from dgm.domain import AgentId, Cost, Evaluate, Evaluation, Usage, Verdict
from dgm.tui.app import Browser
from dgm.tui.screens.agent import TABS, AgentScreen
from tests.support.browser.driving import drive, settle
from tests.support.browser.shown import WIDE, example_copy, opened, press
from tests.support.runs.growing import TASKS, Growing

__all__ = ["example_copy", "opened"]


async def tab(browser: Browser, pilot: Pilot[None], name: str) -> str:
    """Opens a tab, and says all that is in it."""
    browser.go("agent", tab=name)
    await settle(browser, pilot)
    screen = browser.screen
    assert isinstance(screen, AgentScreen)
    return "\n".join(screen.view.body.text())


def test_without_traces_the_rest_is_there(example_copy: Path, opened: Run) -> None:
    shutil.rmtree(example_copy / "traces")
    best = best_of(opened)
    one = opened.store.graded(best)[0].event
    assert one.action

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert "not there: model call 1" in await tab(browser, pilot, "transcript")
        found = await tab(browser, pilot, f"evaluation/{one.action}")
        assert "not there: trace patch" in found and "verdict" in found
        for name in ("diff", "source", "evaluations", "lineage"):
            assert "not there" not in await tab(browser, pilot, name)
        assert "not known of some" in await tab(browser, pilot, "refusals")

    drive(example_copy, WIDE, look, agent=best)


def test_without_sources_the_rest_is_there(example_copy: Path, opened: Run) -> None:
    shutil.rmtree(example_copy / "agents.git" / "objects")
    best = best_of(opened)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        for name in ("diff", "source"):
            assert f"not there: the {name} of agent {best}" in await tab(browser, pilot, name)
        for name in ("evaluations", "lineage", "transcript", "refusals"):
            assert "not there" not in await tab(browser, pilot, name)
        browser.marks = [best, 0]
        shown = await press(browser, pilot, "4")
        assert "not there: code of agent" in shown and "exact McNemar" in shown

    drive(example_copy, WIDE, look, agent=best)


def test_one_damaged_trace_is_missed_alone(example_copy: Path, opened: Run) -> None:
    best = best_of(opened)
    event = opened.store.graded(best)[0].event
    digest = event.outcome.cost.traces["patch"]
    (example_copy / "traces" / digest[:2] / f"{digest[2:]}.z").write_bytes(b"no zlib stream")

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        found = await tab(browser, pilot, f"evaluation/{event.action}")
        assert "not there: trace patch" in found and "is damaged" in found
        assert found.count("not there") == 1

    drive(example_copy, WIDE, look, agent=best)


@pytest.mark.parametrize("part", ["evaluation", "refusals", "transcript"])
def test_a_trace_that_is_whole_and_no_trace_of_dgms_is_missed_alone(tmp_path: Path, part: str) -> None:
    growing = Growing(tmp_path / "run")
    growing.born(0)
    digest = growing.run.traces.put(b"[" * 200_000)
    action = growing.start(1)
    growing.run.append(ModelCalled(action, 1, "improve", "m", digest, digest, Usage(1, 1, 1), 1.0))
    growing.run.append(AgentBorn(action, AgentId(2), (AgentId(1),), "2" * 40, "self-edit", "why"))
    action = growing.run.tree.next_action
    growing.run.append(ActionStarted(action, Evaluate(AgentId(2), TASKS[0])))
    cost = Cost(Usage(), 1.0, {"circumstances": digest})
    growing.run.append(
        TaskGraded(action, Evaluation(AgentId(2), TASKS[0], 0, Verdict.RESOLVED, "right", 1.0, cost))
    )
    growing.run.close()

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        found = await tab(browser, pilot, f"evaluation/{action}" if part == "evaluation" else part)
        wanted = {
            "evaluation": "[[[[",
            "refusals": "not known of some",
            "transcript": "not there: model call",
        }
        assert wanted[part] in found
        assert ("because    right" in found) == (part == "evaluation")

    drive(tmp_path / "run", WIDE, look, agent=2)


def test_what_goes_wrong_beside_the_drawing_ends_nothing(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object, **__: object) -> None:
        raise RuntimeError("of a kind that nobody thought of")

    monkeypatch.setattr("dgm.tui.screens.agent.account_of", wrong)
    monkeypatch.setattr("dgm.tui.tabs.source.is_text", wrong)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        with suppress(WorkerFailed):
            await press(browser, pilot, "2")
        await pilot.pause()
        assert "of a kind that nobody thought of" in browser.said
        monkeypatch.setattr("dgm.tui.screens.agent.account_of", account_of)
        assert "not there: the source of agent 1" in await tab(browser, pilot, "source")

    drive(example, WIDE, look, agent=1)


@pytest.mark.parametrize(
    "name", [*TABS, "evaluation/999999", "source/nothing.py", "evaluation/x", "nonsense"]
)
def test_any_part_may_be_asked_for(example: Path, name: str) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        shown = await tab(browser, pilot, name)
        assert ("not there" in shown) == ("9" in name or "nothing" in name)

    drive(example, WIDE, look, agent=1)


def test_a_run_without_an_agent_waits_for_its_seed(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run", seed=False)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert "waiting for the seed" in await press(browser, pilot, "2")
        for key in ("3", "4", "5"):
            await press(browser, pilot, key, "j", "enter", "v", "m", "c")
        growing.born()
        browser.look()
        assert "agent 0" in await press(browser, pilot, "2")

    drive(tmp_path / "run", WIDE, look)
    growing.run.close()
