"""docs/browser.md says what the program does."""

import re
from pathlib import Path

from tests.tui.document import key_rows
from tests.tui.pictures import FOLDER, PICTURES

DOCUMENT = Path(__file__).parents[2] / "docs" / "browser.md"


def test_the_table_of_keys_is_that_of_the_program() -> None:
    text = DOCUMENT.read_text()
    table = text[text.index("| keys | where | what |\n") :].split("\n\n")[0].splitlines()[2:]
    assert table == list(key_rows())


def test_every_picture_is_there_and_has_its_recipe() -> None:
    named = re.findall(r"\(pictures/([a-z-]+)\.png\)", DOCUMENT.read_text())
    assert named
    for name in named:
        assert (FOLDER / f"{name}.png").is_file(), f"{name}: make pictures"
        assert name in {picture.name for picture in PICTURES}
