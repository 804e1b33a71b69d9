"""docs/browser.md says what the program does."""

import re

from tests.tui.document import CAPTURES, DOCUMENT, key_table, part
from tests.tui.pictures import FOLDER, PICTURES


def test_the_table_of_keys_is_that_of_the_program() -> None:
    assert part(DOCUMENT.read_text(), "keys") == key_table(), "python -m tests.tui.document"


def test_a_followed_search_is_shown_at_three_moments() -> None:
    text = DOCUMENT.read_text()
    counts = [re.search(r"evaluations +(\d+) of (\d+):", part(text, f"live-{name}")) for name in CAPTURES]
    graded = [int(found[1]) for found in counts if found]
    assert len(graded) == 3 and graded == sorted(set(graded))
    assert counts[2] is not None and counts[2][1] == counts[2][2]


def test_every_picture_is_there_and_has_its_recipe() -> None:
    named = re.findall(r"\(pictures/([a-z-]+)\.png\)", DOCUMENT.read_text())
    assert named
    for name in named:
        assert (FOLDER / f"{name}.png").is_file(), f"{name}: make pictures"
        assert name in {picture.name for picture in PICTURES}
