"""``dgm docs``, and that an installed dgm has the pages that messages name."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from dgm.cli.docs import FURTHER, docs, find_pages
from dgm.errors import UserError

ROOT = Path(__file__).parents[3]


def asked(*words):
    return CliRunner().invoke(docs, words, catch_exceptions=False).output


def test_the_wheel_ships_every_page():
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    shipped = hatch["build"]["targets"]["wheel"]["force-include"]
    pages = {f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")}
    assert pages == {path for path in shipped if path.startswith("docs/")}, "the list in pyproject.toml"
    assert all(target == f"dgm/_assets/{path}" for path, target in shipped.items())
    for parts in FURTHER.values():
        assert any("/".join(parts).startswith(path) for path in shipped), parts


def test_pages_are_listed_and_printed():
    listed = asked()
    assert re.search(r"^agents +\S", listed, re.MULTILINE)
    assert len(listed.splitlines()) == len(find_pages())
    assert asked("models") == (ROOT / "docs" / "models.md").read_text()
    assert asked("docs/models.md", "--path").strip() == str(find_pages()["models"])
    assert json.loads(asked("models", "--json"))["text"] == asked("models")


def test_a_page_that_is_not_there_is_told_with_the_nearest():
    with pytest.raises(UserError, match=r"no page 'modls' \(did you mean 'models'\?\)"):
        asked("modls")


def test_messages_name_pages_by_a_command_that_prints_them():
    pages = find_pages()
    for file in (ROOT / "dgm").rglob("*.py"):
        text = file.read_text()
        for name in re.findall(r"dgm docs ([a-z-]+)", text):
            assert name in pages or file.name == "docs.py", (file, name)
        # What messages say stands in brackets; docstrings name files for those who have the source.
        assert not re.search(r"see (docs|archive|benchmarks)/[\w/-]*\.md\)", text), file
