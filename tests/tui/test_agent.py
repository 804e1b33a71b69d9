"""The screen of one agent, on the shipped run."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from dgm.analysis.best import best_of
from dgm.analysis.lineage import Lineage
from dgm.archive.events import AgentBorn
from dgm.archive.history import evaluations_of
from dgm.archive.run import Run
from dgm.domain import ActionId, AgentId
from dgm.show.diffs import Patch
from dgm.show.words import VERDICT_MARKS, interval_text, tally_text
from dgm.tui.app import Browser
from dgm.tui.screens.agent import TABS, AgentScreen
from dgm.tui.tabs import diff
from tests.support.browser.driving import drive, grid, settle
from tests.support.browser.shown import SMALL, TINY, WIDE, opened, press, type_words
from tests.support.runs.growing import Growing

__all__ = ["opened"]


@pytest.fixture(scope="module")
def best(opened: Run) -> int:
    return best_of(opened)


def the_patch(run: Run, agent: int) -> Patch:
    born = run.tree.agents[agent]
    return Patch(run.repository.diff(run.tree.agents[born.parents[0]].commit, born.commit))


def test_the_head_says_who_how_good_and_what_for(example: Path, opened: Run, best: int) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        shown = await press(browser, pilot, "2")
        agent = opened.tree.agents[best]
        own = opened.tree.own(agent.id)
        assert f"agent {best} ★" in shown
        assert f"commit {agent.commit[:12]}" in shown
        assert f"{tally_text(own)} {interval_text(own)}" in shown
        assert agent.rationale.split()[0] in shown
        assert "making it" in shown and "evaluating it" in shown

    drive(example, WIDE, look, agent=best)


def test_the_diff_is_against_the_parent(example: Path, opened: Run, best: int) -> None:
    patch = the_patch(opened, best)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        shown = await press(browser, pilot, "2")
        assert f"agent {best} against its parent agent {opened.tree.agents[best].parents[0]}" in shown
        assert patch.files[0].path in shown
        screen = browser.screen
        assert isinstance(screen, AgentScreen)
        assert len(screen.view.body) == len(patch) + len(patch.files) + 2
        # The name of a file leads to its part.
        shown = await press(browser, pilot, "j", "enter")
        assert screen.view.body.said(screen.view.cursor).startswith("diff --git")

    drive(example, WIDE, look, agent=best)


def test_the_diff_is_against_the_seed_and_a_marked_agent_too(example: Path, opened: Run) -> None:
    deep = max(opened.tree.agents, key=lambda agent: opened.tree.depth(agent.id))
    other = next(each.id for each in opened.tree.agents if each.id not in (0, deep.id, *deep.parents))

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.marks = [other]
        seen = [(await press(browser, pilot, "2")).split("against ")[1].split(":")[0]]
        seen += [(await press(browser, pilot, "d")).split("against ")[1].split(":")[0] for _ in range(3)]
        parent, seed, marked, again = seen
        assert parent == again == f"its parent agent {deep.parents[0]}"
        assert seed == "the seed, agent 0"
        assert marked == f"agent {other}"

    assert opened.tree.depth(deep.id) > 1
    drive(example, WIDE, look, agent=deep.id)


def test_each_root_is_called_what_it_is(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")
    other = growing.born()
    child = growing.born(other)
    grandchild = growing.born(child)
    candidate = AgentId(len(growing.run.tree.agents))
    growing.run.append(AgentBorn(ActionId(0), candidate, (), "c" * 40, "candidate", "entered"))
    growing.run.close()

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert "a further seed" in (await press(browser, pilot, "2")).splitlines()[1]
        assert "A further seed: no operator" in await press(browser, pilot, *["]"] * 4)
        browser.go("agent", agent=grandchild, tab="lineage")
        await settle(browser, pilot)
        assert f"2 steps from agent {other}, a further seed" in grid(browser)
        assert diff.find_compared_agents(browser.reader, grandchild, ()) == [child, other]
        browser.go("agent", agent=candidate, tab="lineage")
        await settle(browser, pilot)
        assert "entered without a parent" in grid(browser).splitlines()[1]
        assert diff.find_compared_agents(browser.reader, candidate, ()) == [None]

    drive(tmp_path / "run", WIDE, look, agent=other)


def test_side_by_side_and_back(example: Path, best: int) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        before = await press(browser, pilot, "2")
        beside = await press(browser, pilot, "v")
        assert " │ " in beside and " │ " not in before
        assert await press(browser, pilot, "v") == before

    drive(example, WIDE, look, agent=best)


def test_the_seed_shows_all_of_its_source_as_added(example: Path, opened: Run) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        shown = await press(browser, pilot, "2")
        assert "all of its source" in shown
        assert all(name in shown for name in ("agent.toml", "agent/loop.py"))

    drive(example, WIDE, look, agent=0)


def test_source_lists_files_and_opens_one(example: Path, opened: Run, best: int) -> None:
    files = opened.source(opened.tree.agents[best].id)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        listed = await press(browser, pilot, "2", "]", "j")
        assert all(name in listed for name in files)
        first = min(files)
        opened = await press(browser, pilot, "enter")
        assert f"{len(files[first].data):,} bytes" in opened
        assert files[first].data.decode().splitlines()[0][:40] in opened
        assert await press(browser, pilot, "escape") == listed

    drive(example, WIDE, look, agent=best)


def test_evaluations_are_listed_and_opened(example: Path, opened: Run, best: int) -> None:
    found = evaluations_of(opened, opened.tree.agents[best].id)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        listed = await press(browser, pilot, "2", "]", "]", "j")
        assert f"{len(found)} evaluations" in listed
        rows = [row for row in listed.splitlines() if any(mark in row for mark in VERDICT_MARKS.values())]
        assert len(rows) >= len(found)
        opened = await press(browser, pilot, "enter")
        first = min(found.values(), key=lambda each: (each.task, each.attempt))
        assert first.task in opened and f"{VERDICT_MARKS[first.verdict]} {first.verdict}" in opened
        assert "what the agent changed" in opened
        assert await press(browser, pilot, "escape") == listed

    drive(example, WIDE, look, agent=best)


def test_lineage_has_every_step_and_leads_to_it(example: Path, opened: Run) -> None:
    deep = max(opened.tree.agents, key=lambda agent: opened.tree.depth(agent.id))
    steps = Lineage(opened.tree, deep.id).agents

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2", "[", "[", "[")
        screen = browser.screen
        assert isinstance(screen, AgentScreen) and screen.tab == "lineage"
        text = "\n".join(screen.view.body.text())
        for step in steps:
            assert step.rationale.split("\n")[0] in text
        assert f"against its parent {steps[-1].parents[0]}" in text
        assert f"{len(steps) - 1} steps from the seed" in text
        shown = await press(browser, pilot, "j", "j", "enter")
        assert f"agent {steps[0].id}" in shown

    drive(example, (120, 60), look, agent=deep.id)


def test_the_transcript_tells_how_it_was_made(example: Path, opened: Run, best: int) -> None:
    calls = opened.store.calls(opened.tree.agents[best].action)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2", *["]"] * TABS.index("transcript"))
        screen = browser.screen
        assert isinstance(screen, AgentScreen)
        lines = list(screen.view.body.text())
        for call in calls:
            assert any(each.startswith(f"call {call.number} ") for each in lines)
        assert "assistant" in lines and "tool" in lines

    assert calls
    drive(example, WIDE, look, agent=best)


def test_refusals_say_that_there_was_none(example: Path, best: int) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        shown = await press(browser, pilot, "2", "[")
        assert "refused or left out by the gateway" in shown
        assert "ended by the limits of its sandbox" in shown

    drive(example, WIDE, look, agent=best)


def test_words_are_found_in_the_text(example: Path, opened: Run, best: int) -> None:
    patch = the_patch(opened, best)
    hunks = [number for number in range(len(patch)) if patch.text(number).startswith("@@")]

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2")
        screen = browser.screen
        assert isinstance(screen, AgentScreen)
        await type_words(browser, pilot, "@@")
        above = len(patch.files) + 2
        assert screen.view.cursor == hunks[0] + above
        await press(browser, pilot, "n")
        assert screen.view.cursor == hunks[1 % len(hunks)] + above
        await press(browser, pilot, "N")
        assert screen.view.cursor == hunks[0] + above
        assert "not found" in await type_words(browser, pilot, "qqqqq")

    drive(example, WIDE, look, agent=best)


def test_tabs_open_by_the_mouse(example: Path, best: int) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2")
        await pilot.click("#agent-tabs", offset=(18, 0))
        await settle(browser, pilot)
        assert "[evaluations]" in grid(browser)

    drive(example, WIDE, look, agent=best)


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_survives_a_terminal_that_shrinks(example: Path, tab: str, best: int) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2", *["]"] * TABS.index(tab))
        before = await press(browser, pilot, "G", "g")
        await pilot.resize_terminal(*TINY)
        await press(browser, pilot, "j", "k", "G", "l", "h")
        assert "▌" in grid(browser)
        await pilot.resize_terminal(*SMALL)
        assert await press(browser, pilot, "g") == before

    drive(example, SMALL, look, agent=best)
