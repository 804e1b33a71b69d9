"""A run of 100,000 agents in a real Chromium: both views can be walked, and the tree zoomed, folded and searched."""

import pytest

from tests.support.browsing import find_violations, serving
from tests.support.runs.bushy import bushy_run

pytestmark = [pytest.mark.connect, pytest.mark.starts_processes]
AGENTS = 100_000
OPENING_MS = 300_000


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    bushy_run(folder / "large", AGENTS, per_agent=1).close()
    with serving(folder) as url:
        yield f"{url}/large"


def open_page(visit, url, drawn):
    page = visit("about:blank")
    page.goto(url, timeout=OPENING_MS)
    page.wait_for_selector(drawn, state="attached", timeout=OPENING_MS)
    return page


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(700)


def test_the_tree_of_100_000_agents_can_be_used(visit, address):
    page = open_page(visit, f"{address}/tree#agent=90000", "#tree-items [aria-selected=true]")
    selected = page.locator("[role=treeitem][aria-selected=true]")
    level = int(selected.get_attribute("aria-level"))
    assert level > 10
    assert page.locator("[role=treeitem]").count() < level + 20
    page.focus("#tree")
    press(page, *["ArrowLeft"] * 8)
    assert int(selected.get_attribute("aria-level")) == level - 8
    press(page, *["+"] * 25)
    zoomed = page.url
    assert "view=" in zoomed
    press(page, "z")
    assert "folded=" in page.url
    press(page, "z", "f")
    assert "view=" not in page.url
    page.fill("#tree-search", "99999")
    page.wait_for_function("() => document.querySelector('#tree-matches').textContent === '1 found'")
    press(page)
    assert page.locator("#item-99999").get_attribute("aria-selected") == "true"
    assert find_violations(page) == {}
    assert page.complaints == []


def test_tasks_by_100_000_agents_can_be_used(visit, address):
    page = open_page(visit, f"{address}/matrix", "#matrix-task[href]")
    page.focus("#matrix-scroller")
    press(page, "+", "+", "End")
    page.wait_for_function("() => document.querySelector('#matrix-verdict').textContent !== 'being read'")
    assert page.evaluate("document.getElementById('matrix-scroller').scrollLeft") > AGENTS
    assert page.complaints == []
