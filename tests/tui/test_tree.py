"""The tree of agents, of finished runs and growing ones."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from dgm.archive.events import RunStopped
from dgm.archive.run import Run
from dgm.domain import AgentId
from dgm.tui import tree as trees
from dgm.tui.app import Browser
from dgm.tui.tree import STEPS, AgentTree
from tests.support.browser.driving import SMALL, WIDE, drive, grid, press, rows_of, settle, type_words
from tests.support.runs.growing import Growing

pytestmark = pytest.mark.sampled


def shown_agents(browser: Browser) -> list[int]:
    """Return the agents from top to bottom."""
    tree = browser.tree_pane.agents
    nodes = [tree.get_node_at_line(line) for line in range(tree.last_line + 1)]
    return [node.data for node in nodes if node is not None and node.data is not None]


def row_of(browser: Browser, agent: int) -> str:
    """Return the row of an agent."""
    return rows_of(browser)[shown_agents(browser).index(agent)]


def test_every_agent_has_a_row_with_its_tallies_and_the_best_a_star(example: Path, opened: Run) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        rows = rows_of(browser)
        assert sorted(shown_agents(browser)) == [agent.id for agent in opened.tree.agents]
        for agent in opened.tree.agents:
            own = opened.tree.own(agent.id)
            assert f" {own.resolved}/{own.n} " in row_of(browser, agent.id)
        assert sum("★" in row for row in rows) == 1
        assert browser.best is not None
        assert "★" in row_of(browser, browser.best)
        assert f"★ {browser.best}" in grid(browser).splitlines()[0]

    drive(example, (160, 60), look)


def test_a_panel_shows_the_agent_under_the_cursor_where_there_is_room(example: Path, opened: Run) -> None:
    commit = opened.tree.agents[3].commit[:12]

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert commit in grid(browser)
        await pilot.resize_terminal(100, 30)
        await settle(browser, pilot)
        assert commit not in grid(browser)

    drive(example, (140, 30), look, agent="3")


def test_a_search_finds_agents_by_commit_operator_rationale_and_task(example: Path, opened: Run) -> None:
    agent = opened.tree.agents[2]
    task = next(iter(opened.tree.tried(AgentId(1))))

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        for words in (agent.commit[:10], agent.operator, agent.rationale[:12], task):
            await type_words(browser, pilot, words)
            assert browser.tree_pane.agents.matches, words
            assert any("»" in row for row in rows_of(browser))
        await type_words(browser, pilot, "5")
        assert browser.tree_pane.agents.agent == 5
        await type_words(browser, pilot, "self-edit")
        before = browser.tree_pane.agents.agent
        await press(browser, pilot, "n")
        await press(browser, pilot, "N")
        assert browser.tree_pane.agents.agent == before
        await type_words(browser, pilot, "100%_\\")
        assert not browser.tree_pane.agents.matches

    drive(example, WIDE, look)


def test_a_run_is_shown_as_it_grows(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert shown_agents(browser) == [0]
        growing.born(0, rationale="first child")
        growing.graded(1, 0, good=True)
        await settle(browser, pilot)
        assert "1/1 100%" in row_of(browser, 1)
        assert "first child" in row_of(browser, 1)
        assert "1/1 100%" in row_of(browser, 0), "the clade of the parent"
        growing.start(1)
        await settle(browser, pilot)
        assert "✎" in row_of(browser, 1)
        browser.tree_pane.agents.goto(1)
        growing.born(0)
        growing.born(1)
        await settle(browser, pilot)
        assert shown_agents(browser) == [0, 1, 3, 2]
        assert browser.tree_pane.agents.agent == 1
        assert "running" in grid(browser).splitlines()[0]
        growing.run.append(RunStopped("budget"))
        await settle(browser, pilot)
        assert "budget" in grid(browser).splitlines()[0]
        assert "✎" not in row_of(browser, 1)

    drive(tmp_path / "run", (160, 30), look)
    growing.run.close()


def test_following_goes_to_the_newest_agent_until_a_key_moves_the_cursor(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")
    for _ in range(3):
        growing.born(0)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "f")
        growing.graded(2, 0, good=True)
        await settle(browser, pilot)
        assert browser.tree_pane.agents.agent == 2
        growing.born(1)
        await settle(browser, pilot)
        assert browser.tree_pane.agents.agent == 4
        await press(browser, pilot, "k")
        growing.born(0)
        await settle(browser, pilot)
        assert browser.tree_pane.agents.agent != 5

    drive(tmp_path / "run", WIDE, look)
    growing.run.close()


@pytest.mark.parametrize("siblings", [0, 1])
def test_no_row_of_a_deep_tree_is_left_of_its_parent(tmp_path: Path, siblings: int) -> None:
    growing = Growing(tmp_path / "run")
    parent = 0
    for _ in range(40):
        child = growing.born(parent)
        for _ in range(siblings):
            growing.born(parent)
        parent = child
    growing.run.close()

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        tree = browser.tree_pane.agents
        rows, agents = rows_of(browser), shown_agents(browser)
        assert sorted(agents) == sorted(tree.rows)
        columns = {
            agent: row.index(f" {agent}", 2 * min(STEPS, tree.rows[agent].depth) - 1 if agent else 0)
            for agent, row in zip(agents, rows, strict=True)
        }
        for agent in agents[1:]:
            assert columns[tree.rows[agent].parents[0]] <= columns[agent]
        assert all(len(row) <= 80 for row in rows)
        assert len({row.index("self-edit") for row in rows[1:]}) == 1, "figures stand below each other"
        assert f"gen {tree.rows[agents[-1]].depth}" in rows[-1] or siblings

    drive(tmp_path / "run", SMALL, look)


def test_folding_hides_descendants_at_any_depth(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")
    for agent in range(20):
        growing.born(agent)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        for agent in (15, STEPS, 3):
            browser.tree_pane.agents.goto(agent)
            await press(browser, pilot, "h")
            assert shown_agents(browser) == list(range(agent + 1))
            assert "▶" in rows_of(browser)[-1]
        growing.born(20)
        await settle(browser, pilot)
        assert shown_agents(browser) == list(range(4))
        browser.tree_pane.agents.goto(21)
        await settle(browser, pilot)
        assert shown_agents(browser) == list(range(22))
        assert browser.tree_pane.agents.agent == 21
        await press(browser, pilot, "r")
        assert browser.tree_pane.agents.agent == 0
        await press(browser, pilot, "z")
        assert shown_agents(browser) == [0]
        await press(browser, pilot, "l", "l", "p")
        assert shown_agents(browser) == [0, 1]
        assert browser.tree_pane.agents.agent == 0

    drive(tmp_path / "run", SMALL, look)
    growing.run.close()


def test_siblings_are_sorted_and_the_cursor_stays(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")
    for _ in range(3):
        growing.born(0)
    for agent, task, good in ((1, 0, False), (2, 0, True), (3, 0, True), (3, 1, True)):
        growing.graded(agent, task, good=good)
    child = growing.born(1)
    for task in range(4):
        growing.graded(child, task, good=True)
    growing.run.close()

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.tree_pane.agents.goto(3)
        orders = {
            "birth": [0, 1, 4, 2, 3],
            "own": [0, 2, 3, 1, 4],
            "clade": [0, 2, 3, 1, 4],
            "bound": [0, 3, 2, 1, 4],
        }
        for order, agents in orders.items():
            assert browser.tree_pane.agents.order == order
            assert shown_agents(browser) == agents
            assert browser.tree_pane.agents.agent == 3
            await press(browser, pilot, "s")

    drive(tmp_path / "run", SMALL, look)


def test_a_large_tree_begins_folded_and_finds_any_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "UNFOLDED", 20)
    growing = Growing(tmp_path / "run")
    for agent in range(40):
        growing.born(agent // 2)
    growing.run.close()

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        assert 1 < len(shown_agents(browser)) <= 20
        await type_words(browser, pilot, "40")
        assert browser.tree_pane.agents.agent == 40
        await press(browser, pilot, "z")
        assert len(shown_agents(browser)) == 41

    drive(tmp_path / "run", SMALL, look)


def test_a_click_moves_the_cursor(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await pilot.click(AgentTree, offset=(60, 4))
        await settle(browser, pilot)
        assert browser.pane.id == "agent"
        assert browser.agent == shown_agents(browser)[4]

    drive(example, (100, 24), look)


def test_a_run_without_an_agent_waits_for_its_seed(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run", seed=False)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        for key in ("2", "3", "4", "5"):
            await press(browser, pilot, key, "j", "enter", "v", "m", "c", "b", "d")
        growing.born()
        assert "agent 0" in await press(browser, pilot, "2")

    drive(tmp_path / "run", WIDE, look)
    growing.run.close()
