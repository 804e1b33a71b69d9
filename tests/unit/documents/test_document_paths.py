"""Paths of modules that documents name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
PATH = re.compile(r"`((?:dgm|tests)/[\w/]+\.py)`")
OF_EXAMPLES = {"tests/test_cart.py", "tests/test_more.py", "tests/test_price.py", "tests/t.py"}
"""Files of the tasks that pages show."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_a_page_names_exist(page):
    named = set(PATH.findall(page.read_text(encoding="utf-8"))) - OF_EXAMPLES
    wrong = [name for name in named if "NAME" not in name and not (ROOT / name).is_file()]
    assert not wrong, f"{page.name} names modules that do not exist"


def test_short_paths_are_not_used_on_the_architecture_page():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    short = re.findall(r"`((?!dgm/|tests/|docs/|sandboxes/|benchmarks/|archive/)[a-z_]+/[\w/]+\.py)`", text)
    assert not short, "begin paths with dgm/"
