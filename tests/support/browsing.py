"""``dgm serve`` in a process of its own, and its pages in a real Chromium; for tests that run where playwright is."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.chromium import executable

SIZES = {"phone": (390, 844), "tablet": (820, 1180), "desk": (1280, 820)}
WAIT_S = 60
AXE = Path(sys.prefix) / "node_modules" / "axe-core" / "axe.min.js"


@contextlib.contextmanager
def serving(folder):
    """The address of a server that shows the runs of a folder."""
    command = [sys.executable, "-m", "dgm", "serve", str(folder), "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield process.stdout.readline().strip().rstrip("/")
    finally:
        process.terminate()
        process.wait(WAIT_S)
        process.stdout.close()


@contextlib.contextmanager
def launch():
    """A browser."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not executable():
        pytest.skip("there is no Chromium (apt-get install chromium-headless-shell)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable(), args=["--no-sandbox"])
        yield browser
        browser.close()


def go(page, url):
    """Open a page of a run, however long it takes to read the run."""
    end = time.monotonic() + 10 * WAIT_S
    while "refresh" in page.request.get(url, timeout=1e3 * 10 * WAIT_S).headers:
        assert time.monotonic() < end, f"{url}: the run was not read"
        page.wait_for_timeout(500)
    page.goto(url)


@pytest.fixture(scope="session")
def chromium():
    """A browser for all tests of a session."""
    with launch() as browser:
        yield browser


@pytest.fixture
def visit(chromium):
    """Opens an address in a page of its own; ``page.complaints`` collects what the console says."""
    contexts = []

    def open_page(url, size="desk", scheme="light", **more):
        width, height = SIZES[size]
        touch = size == "phone"
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            has_touch=touch,
            is_mobile=touch,
            extra_http_headers={"X-Waits": "1"},  # no page that says that another one is being computed
            **more,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_S * 1000)
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()


def find_violations(page):
    """Violations that axe-core reports for a page: rule → the elements."""
    # Evaluated by the driver, so the page's policy against foreign scripts holds for everything else.
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return {
        rule["id"]: [json.dumps(node["target"]) for node in rule["nodes"]] for rule in result["violations"]
    }
