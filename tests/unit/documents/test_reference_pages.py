"""The reference pages are what the code says."""

import re
import runpy
from pathlib import Path

import pytest

import dgm
from dgm.api.agents import AgentView
from dgm.api.replaying import RunReplay
from dgm.cli.commands import COMMANDS
from dgm.config.listing import list_sections

DOCS = Path(__file__).parents[3] / "docs"
PAGES = runpy.run_path(str(DOCS / "reference" / "make_pages.py"))["pages"]()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_page_is_as_the_code_has_it(name):
    assert (DOCS / name).read_text() == PAGES[name], "run: python docs/reference/make_pages.py"


def test_every_setting_has_a_row():
    rows = [line.split("`")[1] for line in PAGES["settings.md"].splitlines() if line.startswith("| `")]
    names = [setting.name for section in list_sections() for setting in section.settings]
    assert set(names) <= set(rows)
    assert len(names) > 100


def test_every_public_name_is_in_the_reference():
    heads = set(re.findall(r"^### `dgm\.(\w+)`$", PAGES["python-reference.md"], re.MULTILINE))
    assert heads == set(dgm.__all__) - {"__version__", "replay"}


def _calls_of_commands():
    """Command → the cell with its Python call, of the table in the guide."""
    text = (DOCS / "library.md").read_text().partition("## Every command and its Python call")[2]
    rows = re.findall(r"^\| `dgm ([\w-]+).*?\| (.*) \|$", text.partition("\n## ")[0], re.MULTILINE)
    return dict(rows)


def test_every_command_has_a_row_with_its_python_call():
    assert list(_calls_of_commands()) == list(COMMANDS)


def test_the_calls_of_the_table_are_there():
    owners = {"dgm": dgm, "run": dgm.Evolution, "agent": AgentView, "run.replay": RunReplay}
    called = 0
    for command, cell in _calls_of_commands().items():
        if cell.startswith("none: "):
            assert command in ("browse", "docs", "completion")
            continue
        for owner, name in re.findall(r"`(run\.replay(?=\.)|dgm|run|agent)\.(\w+)", cell):
            assert hasattr(owners[owner], name), f"{command}: {owner}.{name}"
            called += 1
    assert called > 50
