"""Draw the pictures in docs/pictures from the shipped example: ``make pictures``. Look at them before a commit."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from textual.pilot import Pilot

from dgm.archive.packed import unpack
from dgm.paths import asset
from dgm.tui.app import Browser
from tests.support.browser.driving import drive, press, settle
from tests.support.chromium import Chromium, executable

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
KEYS = {"browse-tree": ("b", "m"), "browse-diff": ("b", "d")}
SCREEN = (120, 36)
WIDTH, HEIGHT = 960, 601
DESK = (1280, 1700)


def browser_page(run: Path, keys: Sequence[str], page: Path) -> None:
    """Write a page with the browser's screen after the keys, in the fonts of this machine."""
    screens: list[str] = []

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, *keys)
        browser.clear_notifications()
        await settle(browser, pilot)
        screens.append(browser.export_screenshot())

    drive(run, SCREEN, script, theme="dark")
    svg = screens[0].replace("<svg ", f'<svg width="{WIDTH}" height="{HEIGHT}" ', 1)
    page.write_text(f'<!doctype html><meta charset="utf-8"><body style="margin: 0">{svg}', encoding="utf-8")


def report_page(run: Path, page: Path) -> None:
    """Write the page of ``dgm report``."""
    environment = {**os.environ, "DGM_ARCHIVE": str(run.parent)}
    command = [sys.executable, "-m", "dgm", "report", run.name, "--html", str(page)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


def main() -> None:
    if not executable():
        raise SystemExit("there is no Chromium: apt-get install chromium-headless-shell")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dgm-") as scratch, Chromium() as chromium:
        run = Path(scratch, "first-search")
        unpack(asset("archive", "example", "example.dgm"), run)
        report_page(run, Path(scratch, "report-desk.html"))
        for name, keys in KEYS.items():
            browser_page(run, keys, Path(scratch, f"{name}.html"))
        for name, size in {**dict.fromkeys(KEYS, (WIDTH, HEIGHT)), "report-desk": DESK}.items():
            picture = FOLDER / f"{name}.png"
            chromium.page(*size).open(Path(scratch, f"{name}.html")).picture(picture)
            print(f"{picture.relative_to(FOLDER.parents[1])}  {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
