"""The pages of a run in a real Chromium: accessible at all sizes, safe with hostile texts, and new while it grows."""

import re
import shutil
import time
from pathlib import Path

import pytest

from dgm.archive.events import RunStarted, RunStopped
from dgm.archive.run import Run
from dgm.domain import Budget
from tests.support.browsing import SIZES, find_violations, serving
from tests.support.runs.growing import TASKS, Growing, growth
from tests.support.runs.hostile import examined, hostile
from tests.support.runs.waiting import make_waiting_run

pytestmark = [pytest.mark.connect, pytest.mark.starts_processes]
EXAMPLE = Path(__file__).parents[2] / "archive" / "example" / "example.dgm"
PAGES = (
    "/",
    "/example.dgm",
    "/example.dgm/agents",
    "/example.dgm/agents/best",
    "/example.dgm/agents/best/diff",
    "/example.dgm/actions/1",
    "/example.dgm/actions/5",
    "/example.dgm/operators",
    "/example.dgm/spend",
    "/example.dgm/events",
    "/living",
    "/waiting",
    "/waiting/waiting/2",
    "/none",
)
ALL_LINKS = "[...document.querySelectorAll('a[href]')].map(link => link.href.split('#')[0])"
WAIT_S = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four runs: a recorded one, one under way, one with waiting children, and a hostile one with a holdout."""
    folder = tmp_path_factory.mktemp("runs")
    shutil.copy(EXAMPLE, folder)
    make_waiting_run(folder / "waiting")
    made = hostile(folder)
    examined(made.run)
    made.run.close()
    return folder


@pytest.fixture(scope="module")
def living(folder):
    steps = Growing(folder / "living")
    steps.born(0)
    steps.start(0)
    for task in range(4):
        steps.graded(0, task, good=task > 0)
    yield steps
    steps.run.close()


@pytest.fixture(scope="module")
def site(folder, living):
    with serving(folder) as url:
        yield url


def until(page, condition, wait_s=WAIT_S):
    """Waits until an expression is true in the page, and returns how long that took."""
    began = time.monotonic()
    while not page.evaluate(condition):
        assert time.monotonic() < began + wait_s, condition
        page.wait_for_timeout(50)
    return time.monotonic() - began


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_accessible_and_fits(visit, site, path, size, scheme):
    page = visit(site + path, size, scheme)
    assert find_violations(page) == {}
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    assert [each for each in page.complaints if "404" not in each] == []


def test_no_text_of_a_stranger_executes(visit, site):
    page = visit(site)
    requests, waiting, seen = [], [f"{site}/"], set()
    page.on("request", lambda request: requests.append(request.url))
    while waiting and len(seen) < 80:
        address = waiting.pop(0)
        if address in seen or not address.startswith(site) or "example" in address or "/living" in address:
            continue
        seen.add(address)
        page.goto(address)
        waiting += page.evaluate(ALL_LINKS)
        assert page.title() != "owned", address
        # The report's page has one script, which its policy names.
        active = page.evaluate("document.querySelectorAll('img, iframe, object, script:not([src])').length")
        assert active <= address.endswith("/report"), address
    assert len(seen) > 50
    # What the network would have been asked for, the report's page included.
    assert [url for url in requests if not url.startswith((site, "data:"))] == []
    assert [text for text in page.complaints if "Content Security Policy" in text] == []


def test_a_page_follows_its_run_without_a_reload(visit, site, living):
    page = visit(f"{site}/living")
    page.evaluate("window.same = true")
    living.born(0, rationale="the newest")
    living.graded(1, 0, good=True)
    until(page, "document.querySelector('[data-news=agents]').textContent === '3'")
    until(page, "document.querySelector('#tiles').textContent.includes('Agents3')")
    assert page.evaluate("window.same")
    assert page.complaints == []


def test_a_growing_run_floods_neither_browser_nor_server(visit, folder, site):
    Growing(folder / "fast").run.close()
    page = visit(f"{site}/fast")
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.evaluate("window.news = 0; document.addEventListener('news', () => { window.news += 1; })")
    with growth(folder / "fast", 50):
        until(page, "window.news > 0")
        page.evaluate("window.news = 0")
        requests.clear()
        page.wait_for_timeout(5_000)
        news, pages = page.evaluate("window.news"), len(requests)
    assert 5 <= news <= 21
    assert pages <= 5


def test_death_resumption_and_end_are_shown(visit, folder, site):
    steps = Growing(folder / "mortal")
    steps.start(0)
    page = visit(f"{site}/mortal")
    state = "document.querySelector('[data-news=state]').textContent"
    until(page, f"{state} === 'running'")
    steps.run.close()
    until(
        page,
        f"{state} === 'interrupted' && document.querySelector('#notes').textContent.includes('dgm resume')",
    )
    with Run.open(folder / "mortal", write=True) as run:
        run.append(RunStarted(Budget(evaluations=9), TASKS))
        until(
            page,
            f"{state} === 'running' && !document.querySelector('#notes').textContent.includes('dgm resume')",
        )
        run.append(RunStopped("goal reached"))
        until(
            page,
            f"{state} === 'goal reached' && document.querySelector('#tiles').textContent.includes('goal')",
        )
    shutil.rmtree(folder / "mortal")
    until(page, "!document.querySelector('#connection').hidden")


def test_keys_move_through_a_list_and_find(visit, site):
    page = visit(f"{site}/example.dgm/agents")
    row = "document.activeElement.closest('tr')?.rowIndex ?? -1"
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate(row) == 2
    page.keyboard.press("k")
    assert page.evaluate(row) == 1
    page.keyboard.press("/")
    page.keyboard.type("no such words")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("words=no"))
    assert page.locator("table").count() == 0
    page.goto(f"{site}/example.dgm/agents")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_filter_hides_rows(visit, site):
    page = visit(f"{site}/example.dgm/agents/best")
    rows = "[...document.querySelectorAll('#evaluations tbody tr')].filter(row => !row.hidden).length"
    before = page.evaluate(rows)
    page.fill("#filter", "unresolved")
    assert 0 < page.evaluate(rows) < before
