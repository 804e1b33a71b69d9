"""Pictures, times and accessibility of the pages of ``dgm serve``: what a person should look at after a change.

Run as ``dist/connect-venv/browser/bin/python -m tests.connect.show_pages ARCHIVE PICTURES [PAGE …]``: each page of each
run in the folder at three sizes, light and dark. Times are ratios to an empty page in the same browser. The first run
of the folder grows meanwhile.
"""

import statistics
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.browsing import SIZES, find_violations, go, launch, serving
from tests.support.runs.growing import growth

PAGES = ("", "tree", "matrix", "agents", "agents/1", "agents/1/diff", "operators", "spend", "events")
SETTLED_MS = 1500
EVENTS_PER_S = 50
LOADS = 3
KEYS = {
    "tree": ("ArrowRight", "ArrowDown", "+", "ArrowLeft", "-"),
    "matrix": ("ArrowRight", "ArrowDown", "+", "-"),
}
EMPTY = b"<!DOCTYPE html><html lang=en><title>empty</title><body><p tabindex=0 role=tree>nothing</p></body></html>"
DRAWN = "#tree-items [aria-selected=true], #matrix-task[href]"
FRAMES = """
async keys => {
  const target = document.querySelector("[role=tree], [role=application]") ?? document.body;
  const frame = () => new Promise(requestAnimationFrame);
  const frames = [];
  let long = 0;
  const observer = new PerformanceObserver(list => list.getEntries().forEach(entry => { long += entry.duration; }));
  observer.observe({ type: "longtask" });
  await frame();
  for (let n = 0; n < 90; n++) {
    const before = performance.now();
    target.dispatchEvent(new KeyboardEvent("keydown", { key: keys[n % keys.length], bubbles: true }));
    await frame();
    await new Promise(done => setTimeout(done));
    frames.push(performance.now() - before);
  }
  observer.disconnect();
  return [frames, long];
}
"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()"


class Empty(BaseHTTPRequestHandler):
    """A page with nothing in it."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(EMPTY)

    def log_message(self, *_):
        """Nothing is printed."""


def measure(browser, url, keys, drawn):
    """Milliseconds to the first paint and to the drawn page, of a middle and a slow frame, and of long tasks."""
    paints, draws = [], []
    for _ in range(LOADS):
        page = browser.new_page(viewport={"width": 1280, "height": 820})
        go(page, url)
        if drawn:
            page.wait_for_selector(DRAWN, state="attached", timeout=120_000)
        draws.append(page.evaluate("performance.now()"))
        page.wait_for_timeout(SETTLED_MS)
        paints.append(page.evaluate(PAINT))
        frames, long = page.evaluate(FRAMES, keys)
        page.close()
    frames.sort()
    return [min(paints), min(draws), statistics.median(frames), frames[int(len(frames) * 0.95)], long]


def report_times(browser, site, runs, empty_url, pages):
    """Prints a line for each page."""
    empty = measure(browser, empty_url, ["x"], drawn=False)
    print(
        "empty page, in ms: first paint {:.0f}, loaded {:.0f}, frame {:.1f}, slow frame {:.1f}".format(*empty)
    )
    for run in runs:
        for path in pages:
            keys = list(KEYS.get(path, ("x",)))
            times = measure(browser, f"{site}/{run}/{path}", keys, drawn=path in KEYS)
            ratios = [f"{mine / other:.1f}" for mine, other in zip(times, empty[:4], strict=False)]
            print(
                f"{run}/{path}: first paint ×{ratios[0]}, drawn ×{ratios[1]}, frame under keys ×{ratios[2]}, "
                f"slow frame ×{ratios[3]}, long tasks {times[4]:.0f} ms in 90 frames",
                flush=True,
            )


def report_growth(browser, site, run, folder, empty_url):
    """Prints how smooth the tree is while 50 events per second are appended to a run."""
    keys = ["Shift"]  # does nothing, so all work in the frames is that of the growth
    page = browser.new_page(viewport={"width": 1280, "height": 820})
    page.goto(empty_url)
    empty, _ = page.evaluate(FRAMES, keys)
    page.goto(f"{site}/{run}/tree")
    page.wait_for_selector(DRAWN, state="attached", timeout=120_000)
    page.wait_for_timeout(SETTLED_MS)
    with growth(folder / run, EVENTS_PER_S):
        page.wait_for_timeout(SETTLED_MS)
        before = page.text_content("[data-news=agents]")
        results = [page.evaluate(FRAMES, keys) for _ in range(4)]
        after = page.text_content("[data-news=agents]")
    page.close()
    frames, empty = sorted(frame for frames, _ in results for frame in frames), sorted(empty)
    middle, slow = len(frames) // 2, int(len(frames) * 0.95)
    print(
        f"{run}/tree at {EVENTS_PER_S} events/s, {before} to {after} agents: "
        f"frame ×{frames[middle] / empty[len(empty) // 2]:.1f}, "
        f"slow frame ×{frames[slow] / empty[int(len(empty) * 0.95)]:.1f}, "
        f"long tasks {sum(long for _, long in results) / sum(frames):.1%} of the time"
    )


def report_pictures(browser, site, runs, pages, folder):
    """Writes the pictures, and prints what axe-core objects to."""
    violations = pictures = 0
    for run in runs:
        for path in pages:
            for name, (width, height) in SIZES.items():
                for scheme in ("light", "dark"):
                    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                    go(page, f"{site}/{run}/{path}")
                    page.wait_for_timeout(SETTLED_MS)
                    file = folder / f"{run}-{path.replace('/', '-') or 'overview'}-{name}-{scheme}.png"
                    page.screenshot(path=file)
                    pictures += 1
                    wider = page.evaluate("document.documentElement.scrollWidth") - width
                    if problems := find_violations(page):
                        violations += len(problems)
                        print(f"{file.name}: {problems}", flush=True)
                    if wider > 0:
                        print(f"{file.name}: {wider} pixels wider than the window", flush=True)
                    page.close()
    print(f"{pictures} pictures in {folder}; axe-core: {violations} violations")


def main(archive, folder, *pages):
    runs = sorted(path.parent.name for path in Path(archive).glob("*/run.json"))
    Path(folder).mkdir(parents=True, exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    threading.Thread(target=partial(server.serve_forever, 0.1), daemon=True).start()
    with serving(archive) as site, launch() as browser:
        report_times(browser, site, runs, f"http://127.0.0.1:{server.server_port}/", pages or PAGES)
        report_growth(browser, site, runs[0], Path(archive), f"http://127.0.0.1:{server.server_port}/")
        report_pictures(browser, site, runs, pages or PAGES, Path(folder))
    server.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
