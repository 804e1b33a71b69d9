"""The tree screen over finished runs, growing ones and broken ones."""

import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dgm.archive.events import RunStopped
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.show.agents import AgentActivity
from dgm.tui import reader as readers
from dgm.tui.agent_list import AgentList
from dgm.tui.app import Browser
from dgm.tui.palette import parse_command
from dgm.tui.reader import RunReader
from dgm.tui.siblings import SiblingOrder
from tests.support.browser.driving import drive, grid, settle
from tests.support.runs.growing import Growing


def agents(browser: Browser) -> AgentList:
    return browser.query_one(AgentList)


def test_every_agent_has_a_row_with_its_tallies_and_the_best_a_star(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        shown = grid(browser)
        assert browser.reader.run is not None
        tree = browser.reader.run.tree
        rows = [row for row in shown.splitlines()[1:-1] if "own " in row]
        assert len(rows) == len(tree.agents)
        for agent in tree.agents:
            own = tree.own(agent.id)
            assert any(f"own {own.resolved}/{own.n} " in row or not own.n for row in rows)
        assert sum("★" in row for row in rows) == 1
        assert f"★ {browser.reader.best}" in shown.splitlines()[0]

    drive(example, (160, 60), script)


def test_the_panel_tells_of_the_agent_under_the_cursor_where_there_is_room(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        agents(browser).goto(AgentId(3))
        await pilot.pause()
        born = browser.reader.born([AgentId(3)])[AgentId(3)]
        assert born.commit[:12] in grid(browser)
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert born.commit[:12] not in grid(browser)

    drive(example, (140, 30), script)


def test_a_click_moves_the_cursor_and_a_double_click_opens(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        await pilot.click(AgentList, offset=(60, 2))
        await pilot.pause()
        assert agents(browser).cursor == 2
        await pilot.click(AgentList, offset=(60, 2), times=2)
        await pilot.pause()
        assert browser.current_mode == "agent"

    drive(example, (100, 24), script)


def test_a_click_on_the_guides_folds(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        lines = agents(browser)
        assert lines.forest is not None
        lines.goto(AgentId(1))
        line = next(
            n for n in range(1, lines.count()) if lines.forest.children(next(lines.forest.walk(n)).agent)
        )
        whole = lines.count()
        await pilot.click(AgentList, offset=(2, line))
        await pilot.pause()
        assert lines.count() < whole

    drive(example, (100, 24), script)


def test_a_click_on_a_screen_in_the_head_goes_there(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        await pilot.click("#head", offset=(grid(browser).splitlines()[0].index("5 Run"), 0))
        await pilot.pause()
        assert browser.current_mode == "running"

    drive(example, (100, 24), script)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("3", "go to agent 3"),
        ("agent 3", "show agent 3"),
        ("diff 3", "what agent 3 changed"),
        ("diff 3 1", "compare agents 3 and 1"),
        ("task [red]x", "show task [red]x"),
        ("sort clade", "sort by clade"),
        ("depth 1", "show 1 generations"),
        ("depth all", "show all generations"),
    ],
)
def test_what_is_typed_as_a_command(typed: str, words: str, example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        command = parse_command(browser, typed)
        assert command is not None
        assert command[0] == words
        command[1]()
        await pilot.pause()
        assert browser.is_running

    drive(example, (100, 24), script)


def test_nonsense_is_no_command(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        for typed in (
            "",
            "999999",
            "sort",
            "sort x",
            "depth -1",
            "diff",
            "diff 1 2 3",
            "agent x",
            "²",
            "task",
            "diff 3 3",
        ):
            assert parse_command(browser, typed) is None

    drive(example, (100, 24), script)


@pytest.mark.parametrize("order", list(SiblingOrder))
def test_the_search_finds_by_commit_operator_rationale_and_task(order: SiblingOrder, example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        page = browser.page
        assert page is not None
        assert browser.reader.run is not None
        agents(browser).sort(order)
        tree = browser.reader.run.tree
        agent = tree.agents[2]
        task = next(iter(tree.tried(AgentId(1))))
        for words in (agent.commit[:10], agent.operator, agent.rationale[:12], task):
            page.find(words)
            await settle(browser, pilot)
            assert agents(browser).found, words
            assert "»" in grid(browser)
        page.find("no such words anywhere")
        await settle(browser, pilot)
        assert "no agent fits" in browser.said
        page.find("100%_\\")
        await settle(browser, pilot)
        assert "no agent fits" in browser.said

    drive(example, (100, 40), script)


def test_a_run_that_grows_is_shown_as_it_grows(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        lines = agents(browser)
        assert lines.count() == 1
        growing.born(0, rationale="first child")
        growing.graded(1, 0, good=True)
        await settle(browser, pilot)
        assert lines.count() == 2
        assert "own 1/1 100%" in grid(browser)
        assert "first child" in grid(browser)
        growing.start(1)
        await settle(browser, pilot)
        assert browser.reader.activity_of(AgentId(1)) is AgentActivity.EXPANDING
        assert "✎" in grid(browser)
        lines.goto(AgentId(1))
        lines.sort(SiblingOrder.OWN)
        growing.born(0)
        growing.graded(2, 0, good=False)
        await settle(browser, pilot)
        assert lines.agent == 1
        assert "running" in grid(browser).splitlines()[0]
        growing.run.append(RunStopped("budget"))
        await settle(browser, pilot)
        assert "budget" in grid(browser).splitlines()[0]

    drive(tmp_path / "run", (120, 24), script)
    growing.run.close()


def test_following_goes_to_the_newest_events_agent_until_a_key_moves_the_cursor(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")
    for _ in range(3):
        growing.born(0)

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        growing.graded(2, 0, good=True)
        await settle(browser, pilot)
        assert agents(browser).agent == 2
        growing.graded(3, 0, good=True)
        await settle(browser, pilot)
        assert agents(browser).agent == 3
        await pilot.press("k")
        growing.graded(3, 1, good=True)
        await settle(browser, pilot)
        assert agents(browser).agent == 2
        assert not browser.following

    drive(tmp_path / "run", (100, 24), script, follow=True)
    growing.run.close()


def test_following_begins_at_once_and_ends_where_a_person_goes(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")
    for _ in range(3):
        growing.born(0)
    growing.graded(1, 0, good=True)
    growing.graded(3, 0, good=False)

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        await pilot.press("f")
        await pilot.pause()
        assert agents(browser).agent == 3 and browser.following
        assert " · following · " in grid(browser).splitlines()[0]
        await pilot.press("2")
        await pilot.pause()
        assert " · the tree follows · " in grid(browser).splitlines()[0]
        growing.graded(2, 0, good=False)
        await settle(browser, pilot)
        await pilot.press("1")
        await pilot.pause()
        assert agents(browser).agent == 2 and browser.following
        for task, go in enumerate(("best", "typed", "typed again"), 1):
            browser.following = True
            if go == "best":
                browser.action_best()
            else:
                meant = parse_command(browser, "0")
                assert meant is not None
                meant[1]()
            await pilot.pause()
            here = agents(browser).agent
            growing.graded(2, task, good=False)
            await settle(browser, pilot)
            assert agents(browser).agent == here == (browser.reader.best if go == "best" else 0)
            assert not browser.following

    drive(tmp_path / "run", (100, 24), script)
    growing.run.close()


def test_a_key_that_shows_what_is_shown_leaves_no_step_to_go_back(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        for key in ("2", "2", "]", "2", "2"):
            await pilot.press(key)
            await settle(browser, pilot)
        assert browser.tab == "source"
        await pilot.press("escape")
        await settle(browser, pilot)
        assert browser.current_mode == "tree"

    drive(example, (100, 24), script)


def test_a_run_without_a_seed_says_that_it_waits(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run", seed=False)

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        assert "no agent is born yet" in grid(browser)
        for key in "jkGgbmcypar<>zsSnf":
            await pilot.press(key)
        growing.born()
        await settle(browser, pilot)
        assert "0" in grid(browser).splitlines()[1]
        assert "no agent is born yet" not in grid(browser)

    drive(tmp_path / "run", (100, 24), script)
    growing.run.close()


def test_a_run_that_is_replaced_stays_as_it_was_and_says_so(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")
    growing.run.close()

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        (tmp_path / "run").rename(tmp_path / "elsewhere")
        browser.reader._state_due = 0.0
        await settle(browser, pilot)
        assert "removed or replaced" in grid(browser)
        assert agents(browser).count() == 1
        await pilot.press("slash", "x", "enter")
        await settle(browser, pilot)
        assert browser.is_running

    drive(tmp_path / "run", (100, 24), script)


def test_a_long_run_is_outlined_and_then_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "SMALL", 5)
    growing = Growing(tmp_path / "run")
    for agent in range(1, 12):
        growing.born((agent - 1) // 2, rationale=f"change {agent}")
        growing.graded(agent, 0, good=agent % 2 == 0)
    growing.start(3)
    with RunReader(tmp_path / "run") as reader:
        assert reader.members is None
        seen = []
        for _ in range(2_000):
            reader.gate.hold()
            reader.advance()
            if reader.members is not None and not seen:
                seen = [
                    (a, reader.members.own(AgentId(a)), reader.members.clade(AgentId(a))) for a in range(12)
                ]
                assert reader.run is None
                assert reader.born([AgentId(7)])[AgentId(7)].rationale == "change 7"
                assert reader.activity_of(AgentId(3)) is AgentActivity.EXPANDING
                break
            time.sleep(0.005)
        assert seen

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        assert browser.reader.run is not None
        members = browser.reader.members
        assert members is browser.reader.run.tree
        assert [(a, members.own(AgentId(a)), members.clade(AgentId(a))) for a in range(12)] == seen
        assert agents(browser).count() == 12
        assert "change 11" in grid(browser)

    drive(tmp_path / "run", (140, 24), script)
    growing.run.close()


def test_more_than_a_page_of_children_are_paged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dgm.tui import agent_list, forest

    monkeypatch.setattr(forest, "MORE", 5)
    monkeypatch.setattr(agent_list, "MORE", 5)
    growing = Growing(tmp_path / "run")
    for _ in range(12):
        growing.born(0)

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        assert agents(browser).count() == 7
        assert "… 7 more (Enter shows 5)" in grid(browser)
        await pilot.press("G", "enter")
        await pilot.pause()
        assert agents(browser).count() == 12
        assert agents(browser).agent == 6
        await pilot.press("G", "enter")
        await pilot.pause()
        assert agents(browser).count() == 13
        assert "more (Enter" not in grid(browser)

    drive(tmp_path / "run", (100, 24), script)
    growing.run.close()


def test_a_folder_without_a_run_is_a_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is .* a run"):
        RunReader(tmp_path)


def test_keys_that_are_typed_fast_act_on_the_agent_that_the_cursor_has_come_to(example: Path) -> None:
    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        agents(browser).action_move(1)
        browser.action_mark()
        assert browser.marks == [agents(browser).agent] != [0]
        agents(browser).action_move(1)
        browser.go("agent")
        assert browser.agent == agents(browser).agent

    drive(example, (100, 24), script)
