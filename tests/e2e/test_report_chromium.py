"""Reports in a real browser: on a desk, on a phone, in print, without a network, and with hostile texts."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.chromium import Chromium, executable
from tests.support.runs.hostile import hostile_folder  # noqa: F401  (a fixture)

pytestmark = [pytest.mark.slow, pytest.mark.sampled]
DESK, PHONE = (1280, 900), (390, 844)
EXAMPLE = Path(__file__).parents[2] / "archive" / "example" / "example.dgm"
SCROLLED = """
    new Promise(done => {
        document.querySelector('.zoom').scrollIntoView();
        requestAnimationFrame(() => requestAnimationFrame(() => done(true)));
    })
"""
"""Goes to the tree, and waits until the page has heard that it was scrolled, which hides the tooltip."""


@pytest.fixture(scope="module")
def browser():
    if not executable():
        if os.environ.get("DGM_REQUIRE_CHROMIUM"):
            pytest.fail("there is no Chromium, and DGM_REQUIRE_CHROMIUM asks for one")
        pytest.skip("there is no Chromium (apt-get install chromium-headless-shell)")
    with Chromium() as running:
        yield running


@pytest.fixture(scope="module")
def reports(dgm, searched, hostile_folder, tmp_path_factory):  # noqa: F811
    """The pages of a real search, of one whose best agent is a child, and of a run in which every text is hostile."""
    folder = tmp_path_factory.mktemp("reports")
    dgm("report", EXAMPLE, "--html", folder / "example.html")
    dgm("report", "small", "--html", folder / "searched.html")
    dgm("report", hostile_folder, "--html", folder / "hostile.html")
    return {name: folder / f"{name}.html" for name in ("searched", "example", "hostile")}


@pytest.fixture(params=["searched", "hostile"])
def file(request, reports):
    return reports[request.param]


@pytest.mark.parametrize(("size", "scheme"), [(DESK, "light"), (DESK, "dark"), (PHONE, "light")])
def test_it_loads_without_a_complaint_and_without_asking_anybody(browser, file, size, scheme):
    page = browser.page(*size, mobile=size is PHONE, scheme=scheme).open(file)
    assert page.complaints() == []
    assert page.requests() == [file.resolve().as_uri()]
    assert page.js("document.querySelectorAll('section').length") == 9
    assert page.js("document.documentElement.scrollWidth") <= size[0]
    assert page.js("document.querySelectorAll('svg').length") > 3


def test_no_script_of_a_hostile_name_runs(browser, reports):
    page = browser.page(*DESK).open(reports["hostile"])
    title = page.js("document.title")
    assert title.startswith("dgm report: ")
    for _ in range(2):
        # Everything that could be waiting for a person: opened, pointed at, printed.
        page.js("document.querySelectorAll('details').forEach(part => part.open = true)")
        page.js("dispatchEvent(new Event('beforeprint')), dispatchEvent(new Event('afterprint'))")
    assert page.js("document.title") == title
    assert (
        page.js("document.images.length + document.querySelectorAll('iframe, object, embed, link').length")
        == 0
    )
    assert page.js("document.scripts.length") == 1
    handlers = (
        "[...document.querySelectorAll('*')].some(e => [...e.attributes].some(a => a.name.startsWith('on')))"
    )
    assert page.js(handlers) is False
    assert page.complaints() == []


def test_the_policy_stops_a_script_that_would_get_in(browser, reports):
    page = browser.page(*DESK).open(reports["searched"])
    page.js(
        "document.body.appendChild(Object.assign(document.createElement('script'),"
        " {textContent: \"document.title = 'owned'\"}))"
    )
    page.js("document.body.appendChild(Object.assign(new Image(), {src: 'https://example.org/x.png'}))")
    assert page.js("document.title") != "owned"
    assert any("Content Security Policy" in str(complaint) for complaint in page.complaints())


def test_the_tree_is_zoomed_moved_and_pointed_at(browser, reports):
    page = browser.page(*DESK).open(reports["searched"])
    page.js(SCROLLED)
    place = "(r => [r.left + r.width / 2, r.top + r.height / 2])"
    x, y = page.js(f"{place}(document.querySelector('.zoom .node[data-t]').getBoundingClientRect())")
    page.mouse("mouseMoved", x, y)
    assert page.js("document.getElementById('tip').hidden") is False
    assert page.js("document.getElementById('tip').textContent").startswith("agent ")
    page.mouse("mouseMoved", 2, 2)
    assert page.js("document.getElementById('tip').hidden") is True
    box = "document.querySelector('.zoom svg').getAttribute('viewBox').split(' ').map(Number)"
    whole = page.js(box)
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-120, modifiers=2)
    near = page.js(box)
    assert near[2] < whole[2]
    page.mouse("mousePressed", x + 50, y, button="left", buttons=1)
    page.mouse("mouseMoved", x, y - 10, button="left", buttons=1)
    page.mouse("mouseReleased", x, y - 10, button="left")
    assert page.js(box)[0] > near[0]
    page.js("document.querySelector('button[value=all]').click()")
    assert page.js(box) == whole


def test_a_wheel_alone_scrolls_the_page(browser, reports):
    page = browser.page(*DESK).open(reports["searched"])
    box = "document.querySelector('.zoom svg').getAttribute('viewBox')"
    page.js(SCROLLED)
    before = page.js(box)
    page.mouse("mouseWheel", 640, 300, deltaX=0, deltaY=-120)
    assert page.js(box) == before


@pytest.mark.parametrize("name", ["searched", "example", "hostile"])
def test_it_is_printed_with_its_diffs(browser, reports, searched, name, tmp_path):
    page = browser.page(*DESK).open(reports[name])
    data = page.pdf()
    assert data.startswith(b"%PDF")
    # Closed again once it is printed.
    assert page.js("document.querySelectorAll('details[open]').length") == 0
    if not shutil.which("pdftotext"):
        return
    (tmp_path / "report.pdf").write_bytes(data)
    pages = subprocess.run(["pdfinfo", tmp_path / "report.pdf"], capture_output=True, text=True, check=True)
    assert 3 <= int(re.search(r"Pages:\s+(\d+)", pages.stdout)[1]) <= 60
    text = subprocess.run(
        ["pdftotext", "-layout", tmp_path / "report.pdf", "-"], capture_output=True, check=True
    )
    said = text.stdout.decode("utf-8", "replace")
    assert "How to reproduce it" in said
    # A small search may end where it began: then there is nothing to print a diff of, and that is said.
    changed = name != "searched" or searched["best"]["agent"] != 0
    assert ("@@ -" in said) is changed
    assert ("The best agent is the seed." in said) is not changed
