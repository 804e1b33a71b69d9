"""The tab of one agent, on the shipped run."""

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import TabbedContent

from dgm.analysis.agents import best_of
from dgm.archive.events import AgentNoted
from dgm.archive.repository import patch
from dgm.archive.run import Run, evaluations_of
from dgm.domain import ActionId, AgentId, Born, Entry
from dgm.tui.agent import PARTS
from dgm.tui.app import Browser
from dgm.tui.pane import Listing, TextView
from tests.support.browser.driving import WIDE, drive, grid, press, settle, type_words
from tests.support.runs.growing import Growing

pytestmark = pytest.mark.sampled


async def open_part(browser: Browser, pilot: Pilot[None], agent: int, part: str) -> str:
    """Open a part of an agent and return the screen."""
    browser.agent_pane.part = part
    browser.go("agent", agent=agent)
    await pilot.pause()
    await settle(browser, pilot)
    return grid(browser)


def text_of(browser: Browser, part: str) -> str:
    """Return the whole text of a part."""
    view = browser.query_one(f"#{part}-text", TextView)
    return "\n".join(strip.text.rstrip() for strip in view.lines)


def keys_of(browser: Browser, part: str) -> list[str]:
    """Return the keys of the rows of a part."""
    return [str(key.value) for key in browser.query_one(f"#{part}-list", Listing).rows]


def test_a_note_about_the_agent_in_view_is_recorded(example_copy: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await open_part(browser, pilot, 1, "facts")
        await press(browser, pilot, "a", "escape", "a", *"slow", "enter")
        assert len(browser.screen_stack) == 1

    drive(example_copy, WIDE, look)
    with Run.open(example_copy) as run:
        assert [*run.store.events(AgentNoted)] == [AgentNoted(AgentId(1), "slow")]


def test_the_facts_name_origin_tallies_and_cost(example: Path, opened: Run) -> None:
    best = best_of(opened)
    own, agent = opened.tree.own(best), opened.tree.agents[best]

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await open_part(browser, pilot, best, "facts")
        text = text_of(browser, "facts")
        for fact in (
            agent.commit,
            f"{own.resolved}/{own.n}",
            agent.operator,
            "making it",
            agent.rationale[:20],
        ):
            assert fact in text
        assert f"agent {best} ★" in grid(browser).splitlines()[2]

    drive(example, WIDE, look)


def test_brackets_go_through_the_parts(example: Path) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2")
        for part in (*PARTS[1:], PARTS[0]):
            await press(browser, pilot, "right_square_bracket")
            assert browser.query_one("#parts", TabbedContent).active == part
        await press(browser, pilot, "left_square_bracket")
        assert browser.agent_pane.part == PARTS[-1]

    drive(example, WIDE, look)


def test_the_diff_is_against_the_parent_then_the_root_then_marked_agents(example: Path, opened: Run) -> None:
    best = best_of(opened)
    parent = opened.tree.agents[best].parents[0]
    before, after = opened.tree.agents[parent].commit, opened.tree.agents[best].commit
    data = opened.repository.diff(before, after).decode()
    added = [line for line in data.splitlines() if line.startswith("+") and line[1:].strip()][1:]

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        browser.marks = [2]
        await open_part(browser, pilot, best, "diff")
        text = text_of(browser, "diff")
        assert f"agent {best} against its parent {parent}" in text
        assert all(line in text for line in added)
        for base in (0, 2, parent):
            await press(browser, pilot, "d")
            assert f"agent {best} against" in text_of(browser, "diff").splitlines()[0]
            assert text_of(browser, "diff").splitlines()[0].endswith(f" {base}")

    drive(example, WIDE, look)


def test_both_sides_stand_beside_each_other(example: Path, opened: Run) -> None:
    best = best_of(opened)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await open_part(browser, pilot, best, "diff")
        await press(browser, pilot, "v")
        unchanged = [
            line for line in text_of(browser, "diff").splitlines() if line.strip().startswith("MAX_STEPS")
        ]
        assert unchanged
        assert all(line.count("MAX_STEPS") == 2 for line in unchanged)

    drive(example, WIDE, look)


def test_the_seed_shows_all_of_its_source(example: Path, opened: Run) -> None:
    files = len(opened.source(AgentId(0)))

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await open_part(browser, pilot, 0, "diff")
        lines = text_of(browser, "diff").splitlines()
        assert lines[0] == "agent 0: all of its source"
        assert sum(line.startswith("@@ -0,0") for line in lines) == files
        assert patch({}, opened.source(AgentId(0))).decode().count("\n+") < 2 * len(lines)

    drive(example, WIDE, look)


def test_evaluations_lead_to_the_attempt(example: Path, opened: Run) -> None:
    best = best_of(opened)
    evaluations = evaluations_of(opened, best)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await open_part(browser, pilot, best, "evaluations")
        keys = keys_of(browser, "evaluations")
        assert sorted(map(int, keys)) == sorted(evaluations)
        shown = await press(browser, pilot, "enter")
        first = evaluations[ActionId(int(keys[0]))]
        assert f"agent {best} on {first.task}" in shown
        assert "patch" in shown
        assert (await press(browser, pilot, "escape")).splitlines()[2].startswith(f" agent {best}")

    drive(example, WIDE, look)


def test_the_lineage_leads_to_each_ancestor(example: Path, opened: Run) -> None:
    best = best_of(opened)
    line = [*opened.tree.ancestors(best)]

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await open_part(browser, pilot, best, "lineage")
        assert {int(key) for key in keys_of(browser, "lineage")} == {best, *line}
        await press(browser, pilot, "g", "enter")
        assert browser.agent == 0

    drive(example, WIDE, look)


def test_files_are_listed_and_opened(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run", seed=False)
    files = {"a.py": Entry(b"print(1)\n"), "blob": Entry(b"\0\x01PNG" * 200), "z": Entry(b"a.py", 0o120000)}
    commit = growing.run.repository.commit(files, [])
    growing.run.append(growing.run.birth(Born((), "seed", commit, "why"), ActionId(0)))
    growing.run.close()

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await open_part(browser, pilot, 0, "files")
        assert keys_of(browser, "files") == ["a.py", "blob", "z"]
        for down, words in ((0, "print(1)"), (1, "binary, 1 kB"), (1, "link to a.py")):
            shown = await press(browser, pilot, *["j"] * down, "enter")
            assert words in shown
            await press(browser, pilot, "escape")
        assert browser.pane.id == "agent"

    drive(tmp_path / "run", WIDE, look)


def test_its_making_is_the_conversation_of_its_operator(example: Path, opened: Run) -> None:
    best = best_of(opened)
    calls = opened.store.calls(opened.tree.agents[best].action)

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await open_part(browser, pilot, best, "making")
        assert f"{len(calls)} model calls" in text_of(browser, "making")
        top = browser.query_one("#making-text", TextView).scroll_offset.y
        await press(browser, pilot, "right_curly_bracket", "right_curly_bracket")
        assert browser.query_one("#making-text", TextView).scroll_offset.y > top
        await open_part(browser, pilot, 0, "making")
        assert "a seed" in text_of(browser, "making")

    drive(example, WIDE, look)


@pytest.mark.parametrize("key", ["n", "N"])
def test_words_are_found_in_a_text(key: str, example: Path, opened: Run) -> None:
    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await open_part(browser, pilot, 0, "diff")
        view = browser.query_one("#diff-text", TextView)
        await type_words(browser, pilot, "import")
        first = view._match
        assert first is not None
        assert "import" in view.lines[first].text
        await press(browser, pilot, key)
        assert view._match not in (None, first)
        await type_words(browser, pilot, "no such words anywhere")
        assert view._match not in (None, first)

    drive(example, WIDE, look)


def test_a_new_verdict_is_shown(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")

    async def look(browser: Browser, pilot: Pilot[None]) -> None:
        await open_part(browser, pilot, 0, "evaluations")
        assert keys_of(browser, "evaluations") == []
        growing.graded(0, 0, good=True)
        await settle(browser, pilot)
        await settle(browser, pilot)
        assert len(keys_of(browser, "evaluations")) == 1
        assert "1/1" in grid(browser).splitlines()[2]

    drive(tmp_path / "run", WIDE, look)
    growing.run.close()
