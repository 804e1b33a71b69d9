"""The page of tasks × agents in a real Chromium: its cells, keys, scrolling, table, links and news."""

import pytest

from dgm.archive.run import Run
from tests.support.browsing import SIZES, find_violations, serving
from tests.support.runs.bushy import bushy_run
from tests.support.runs.growing import TASKS, Growing
from tests.support.runs.hostile import hostile

pytestmark = [pytest.mark.connect, pytest.mark.starts_processes]


def make_small(folder):
    """Agent 1 resolved tasks 0 to 2 of three, agent 2 one of two, the seed none of one; task 3 was never tried."""
    steps = Growing(folder)
    steps.born(0)
    steps.born(0)
    steps.graded(0, 0, good=False)
    for task in range(3):
        steps.graded(1, task, good=True)
    steps.graded(2, 0, good=True)
    steps.graded(2, 1, good=False)
    steps.run.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    bushy_run(folder / "bushy", 3000, per_agent=3).close()
    make_small(folder / "small")
    hostile(folder, name="hostile").run.close()
    with serving(folder) as url:
        yield url


def open_matrix(visit, url, **more):
    page = visit(url, **more)
    page.wait_for_selector("#matrix-task[href]", state="attached")
    page.wait_for_timeout(400)
    return page


def cell_of(page):
    """Task, agent and verdict under the cursor."""
    return [page.text_content(f"#matrix-{name}").removesuffix(" ★") for name in ("task", "agent", "verdict")]


def press(page, *keys):
    page.focus("#matrix-scroller")
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(400)


def test_the_best_agents_and_the_easiest_tasks_come_first(visit, site):
    page = open_matrix(visit, f"{site}/small/matrix")
    # Task 2 was resolved by all that tried it, task 0 by two of three, task 1 by one of two.
    assert cell_of(page) == [TASKS[2], "agent 1", "resolved"]
    press(page, "ArrowDown")
    assert cell_of(page) == [TASKS[0], "agent 1", "resolved"]
    press(page, "ArrowRight", "ArrowDown")
    assert cell_of(page) == [TASKS[1], "agent 2", "unresolved"]
    press(page, "End", "PageUp")
    assert cell_of(page) == [TASKS[2], "agent 0", "not tried yet"]
    assert page.complaints == []


def test_other_orders_keep_the_cell(visit, site):
    page = open_matrix(visit, f"{site}/small/matrix")
    press(page, "ArrowRight")
    before = cell_of(page)
    page.select_option("#matrix-agents", "birth")
    page.select_option("#matrix-tasks", "suite")
    page.wait_for_timeout(400)
    assert cell_of(page) == before
    press(page, "Home")
    assert cell_of(page)[1] == "agent 0"
    press(page, "PageUp")
    assert cell_of(page) == [TASKS[0], "agent 0", "unresolved"]
    page.select_option("#matrix-agents", "line")
    press(page, "End")
    assert page.text_content("#matrix-agent").endswith(" ★")


def test_enter_opens_the_evaluation(visit, site):
    page = open_matrix(visit, f"{site}/small/matrix")
    press(page, "Enter")
    page.wait_for_url("**/small/agents/1/tasks/**")
    assert page.locator("h1").count() == 1
    assert TASKS[2] in page.text_content("main")


def test_a_link_shows_the_same_cell(visit, site):
    page = open_matrix(visit, f"{site}/bushy/matrix")
    press(page, "-", "Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowDown", "ArrowRight")
    copy = open_matrix(visit, page.url)
    assert cell_of(copy) == cell_of(page)
    assert copy.evaluate("location.hash") == page.evaluate("location.hash")


@pytest.mark.parametrize("fragment", ["agent=-5&task=x&size=99", "agents=red&size=-1", "agent=1e9"])
def test_a_broken_link_shows_the_first_cell(visit, site, fragment):
    page = open_matrix(visit, f"{site}/small/matrix#{fragment}")
    assert cell_of(page)[1] == "agent 1"
    assert page.complaints == []


def test_the_end_of_thousands_of_agents_can_be_seen(visit, site):
    page = open_matrix(visit, f"{site}/bushy/matrix")
    press(page, "+", "+", "End")
    last = cell_of(page)
    assert last[2] != "being read"
    assert page.evaluate("document.getElementById('matrix-scroller').scrollLeft") > 10_000
    press(page, "Home")
    assert cell_of(page)[1] != last[1]


def test_the_table_says_the_same(visit, site):
    page = open_matrix(visit, f"{site}/small/matrix")
    page.click("#matrix-details summary")
    page.wait_for_timeout(300)
    rows = page.locator("#matrix-table tbody tr")
    assert rows.count() == len(TASKS)
    assert rows.nth(0).locator("th, td").all_text_contents() == [
        TASKS[2],
        "resolved",
        "not tried yet",
        "not tried yet",
    ]
    assert rows.nth(0).locator("a").get_attribute("href").endswith("/agents/1/tasks/suite%2Ftask-2")


def test_the_mouse_points_at_cells(visit, site):
    page = open_matrix(visit, f"{site}/small/matrix")
    box = page.locator("#matrix-scroller").bounding_box()
    page.mouse.move(box["x"] + 280 + 22 + 11, box["y"] + 58 + 20 + 10)
    page.wait_for_timeout(400)
    assert cell_of(page) == [TASKS[0], "agent 2", "resolved"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("run", ["bushy", "hostile"])
def test_axe_finds_nothing(visit, site, size, scheme, run):
    page = open_matrix(visit, f"{site}/{run}/matrix", size=size, scheme=scheme)
    page.click("#matrix-details summary")
    page.wait_for_timeout(400)
    assert find_violations(page) == {}
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]


def test_new_verdicts_appear_and_newborns_come_last(visit, tmp_path):
    make_small(tmp_path / "growing")
    with Run.open(tmp_path / "growing", write=True) as run, serving(tmp_path) as url:
        steps = Growing.__new__(Growing)
        steps.run = run
        page = open_matrix(visit, f"{url}/growing/matrix")
        press(page, "ArrowRight")
        assert cell_of(page) == [TASKS[2], "agent 2", "not tried yet"]
        steps.graded(2, 2, good=False)
        steps.born(1)
        page.wait_for_selector("#matrix-sort:not([hidden])")
        page.wait_for_timeout(500)
        assert cell_of(page) == [TASKS[2], "agent 2", "unresolved"]
        press(page, "End")
        assert cell_of(page)[1] == "agent 3"
        assert page.complaints == []
