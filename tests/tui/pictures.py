"""Makes the pictures of the browser in docs/pictures: ``make pictures``; whoever changes a screen runs it, and looks.

A screen is drawn as SVG by Textual and made a PNG by ``rsvg-convert`` (librsvg), with the fonts of this machine: what
would be fetched from elsewhere is cut out of the SVG first.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from textual.pilot import Pilot

from dgm.archive.packed import unpack
from dgm.paths import asset
from dgm.tui.app import Browser
from tests.support.browser.driving import drive, press, settle

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
FONT = "DejaVu Sans Mono"
_FACE = re.compile(r"@font-face\s*\{[^}]*\}")
_FAMILY = re.compile(r"font-family:\s*[^;]+;")


class Picture(NamedTuple):
    """A screen, and how to get there."""

    name: str
    keys: Sequence[str]
    size: tuple[int, int] = (120, 36)
    theme: str = "dark"


PICTURES = (
    Picture("browse-tree", ("b", "m")),
    Picture("browse-diff", ("b", "d")),
    Picture("browse-beside", ("b", "d", "v")),
    Picture("browse-evaluations", ("b", "2", "right_square_bracket", "right_square_bracket")),
    Picture("browse-lineage", ("b", "2", *["right_square_bracket"] * 3)),
    Picture("browse-tasks", ("3",)),
    Picture("browse-task", ("3", "j", "j", "j", "enter")),
    Picture("browse-compare", ("b", "m", "p", "m", "c")),
    Picture("browse-run", ("5",), (120, 48)),
    Picture("browse-light", ("b", "m"), (80, 24), "light"),
    Picture("browse-keys", ("question_mark",)),
)


def make(picture: Picture, run: Path, folder: Path) -> Path:
    """Draws one picture; its file."""
    drawn: list[str] = []

    async def script(browser: Browser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, *picture.keys)
        browser.clear_notifications()
        await settle(browser, pilot)
        drawn.append(browser.export_screenshot())

    drive(run, picture.size, script, theme=picture.theme)
    svg = _FAMILY.sub(f"font-family: {FONT};", _FACE.sub("", drawn[0]))
    # Blanks at the beginning of a piece of text are dropped otherwise, and what follows is drawn too far left.
    svg = (
        svg.replace("&#160;", " ")
        .replace("\N{NO-BREAK SPACE}", " ")
        .replace("<text ", '<text xml:space="preserve" ')
    )
    if "url(http" in svg or "@import" in svg:
        raise SystemExit(f"{picture.name}: the picture would be fetched from elsewhere")
    target = folder / f"{picture.name}.png"
    command = [
        "rsvg-convert",
        "--format",
        "png",
        "--width",
        str(8 * picture.size[0]),
        "--output",
        str(target),
    ]
    subprocess.run(command, input=svg.encode(), check=True, timeout=60)
    return target


def main() -> None:
    """Draws all, or those whose names are given."""
    if not shutil.which("rsvg-convert"):
        raise SystemExit("rsvg-convert is not installed: apt-get install librsvg2-bin")
    wanted = sys.argv[1:]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dgm-") as scratch:
        run = Path(scratch, "first-search")
        unpack(asset("archive", "example", "example.dgm"), run)
        for picture in PICTURES:
            if not wanted or picture.name in wanted:
                made = make(picture, run, FOLDER)
                print(f"{made.relative_to(FOLDER.parents[1])}  {made.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
