"""Makes the pictures of the report in docs/pictures: ``make pictures``; whoever changes the page runs it, and looks.

They are of the shipped example.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dgm.archive.packed import unpack
from dgm.paths import asset
from tests.support.chromium import Chromium, executable

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
SIZES = {"report-desk": (1280, 1700), "report-phone": (390, 1700)}


def main() -> None:
    """Draws both."""
    if not executable():
        raise SystemExit("there is no Chromium: apt-get install chromium-headless-shell")
    with tempfile.TemporaryDirectory(prefix="dgm-") as scratch, Chromium() as browser:
        unpack(asset("archive", "example", "example.dgm"), Path(scratch, "first-search"))
        file = Path(scratch, "report.html")
        words = ["report", "first-search", "--html", str(file)]
        command = [sys.executable, "-m", "dgm", *words]
        subprocess.run(command, check=True, env={**os.environ, "DGM_ARCHIVE": scratch}, stdout=sys.stderr)
        for name, (width, height) in SIZES.items():
            made = FOLDER / f"{name}.png"
            browser.page(width, height, mobile=name.endswith("phone")).open(file).picture(made)
            print(f"{made.relative_to(FOLDER.parents[1])}  {made.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
