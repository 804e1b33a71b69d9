"""The reference pages are what the code says."""

import runpy
from pathlib import Path

import pytest

from dgm.config.listing import list_sections

DOCS = Path(__file__).parents[2] / "docs"
PAGES = runpy.run_path(str(DOCS / "reference" / "make_pages.py"))["pages"]()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_page_is_as_the_code_has_it(name):
    assert (DOCS / name).read_text() == PAGES[name], "run: python docs/reference/make_pages.py"


def test_every_setting_has_a_row():
    rows = [line.split("`")[1] for line in PAGES["settings.md"].splitlines() if line.startswith("| `")]
    names = [setting.name for section in list_sections() for setting in section.settings]
    assert set(names) <= set(rows)
    assert len(names) > 100
