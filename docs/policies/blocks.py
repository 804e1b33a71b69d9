"""Puts what was measured between the markers of a page: ``<!-- NAME -->`` … ``<!-- end -->``."""

import sys
from collections.abc import Mapping
from pathlib import Path


def fill_in(page: Path, blocks: Mapping[str, str]) -> None:
    """Writes the page anew; ends the program where it has not all of the blocks."""
    text = page.read_text()
    for name, block in blocks.items():
        head, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition("<!-- end -->")
        if not end:
            sys.exit(f"{page}: has no block <!-- {name} --> … <!-- end -->")
        text = f"{head}{begin}{block}\n{end}{tail}"
    page.write_text(text)
