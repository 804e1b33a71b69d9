"""Pages of which only marked blocks change, and files of lines that a killed process may have left unfinished."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from dgm.archive.durable import write_durably

END = "<!-- end -->"


def whole_lines(path: Path) -> list[str]:
    """Of a file that a killed process may have left with half a line at its end; none where there is no file."""
    return path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []


def check(page: Path, blocks: Iterable[str]) -> None:
    """Ends the program where a page has not all of the blocks: ``<!-- NAME -->`` … ``<!-- end -->``."""
    text = page.read_text()
    for name in blocks:
        _, _, rest = text.partition(f"<!-- {name} -->\n")
        block, end, _ = rest.partition(END)
        if not end or "<!-- " in block:
            sys.exit(f"{page}: has no block <!-- {name} --> … {END}")


def fill_in(page: Path, blocks: Mapping[str, str]) -> None:
    """Puts text into the page's blocks."""
    check(page, blocks)
    text = page.read_text()
    for name, block in blocks.items():
        head, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition(END)
        text = f"{head}{begin}{block}\n{end}{tail}"
    write_durably(page, text.encode())
