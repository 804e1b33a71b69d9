"""Console blocks of documents: short, and what they print comes from the program ``docs/console/make_blocks.py``."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MAKER = runpy.run_path(str(ROOT / "docs" / "console" / "make_blocks.py"))
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_console_block_is_short_and_its_output_is_made(page):
    text = page.read_text(encoding="utf-8")
    by_hand = CONSOLE.findall(MAKER["BLOCK"].sub("", text))

    assert [block for block in CONSOLE.findall(text) if block.count("\n") > MAKER["LONGEST"]] == []
    assert [block for block in by_hand if not _only_commands(block)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_with_made_blocks_are_known_to_the_program(page):
    made = "<!-- printed:" in page.read_text(encoding="utf-8")

    assert made == (str(page.relative_to(ROOT)) in MAKER["PAGES"])
    assert page.read_text(encoding="utf-8").count("<!-- printed:") == len(
        MAKER["BLOCK"].findall(page.read_text(encoding="utf-8"))
    )


def test_lines_that_parts_name_are_shown_and_gaps_are_marked():
    output = "".join(f"{n}\n" for n in range(1, 10)) + "x" * 200

    assert MAKER["cut"](output, "first 2") == ["1", "2", "…"]
    assert MAKER["cut"](output, 'first 1, from "4" 2') == ["1", "…", "4", "5", "…"]
    assert MAKER["cut"](output, "last 2") == ["…", "9", "x" * (MAKER["WIDTH"] - 1) + "…"]
    assert MAKER["cut"]("one\ntwo", "first 9") == ["one", "two"]
    with pytest.raises(ValueError, match="no line of the output contains 'ten'"):
        MAKER["cut"](output, 'from "ten" 1')
    with pytest.raises(ValueError, match="is none of"):
        MAKER["cut"](output, "middle 3")


def test_a_block_is_filled_with_what_its_commands_print():
    before = "<!-- printed: first 1 -->\n```console\n$ dgm list     # all\nold\n```\n<!-- end -->\n$ kept"

    after = MAKER["fill"](before, {"dgm list": "new\nmore\n"}.__getitem__)

    assert after == before.replace("old\n", "new\n…\n")


def _only_commands(block: str) -> bool:
    lines = block.splitlines()
    return all(
        not line or line.startswith("$ ") or (n and lines[n - 1].endswith("\\"))
        for n, line in enumerate(lines)
    )
