"""What docs/browser.md takes from the program: the table of keys, and captures of a search that was followed.

``python -m tests.tui.document [FOLDER]`` puts them in; FOLDER holds captures of tests/e2e/test_browse_live.py.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from dgm.tui.keys import KEYS, KeyScope, key_text

DOCUMENT = Path(__file__).parents[2] / "docs" / "browser.md"
CAPTURES = ("birth", "half", "end")
SHOWN = 12
"""Rows of a capture; its last one, the foot, comes besides."""
WHERE = {
    KeyScope.EVERYWHERE: "everywhere",
    KeyScope.LIST: "lists and texts",
    KeyScope.TREE: "1 Tree, 3 Task",
    KeyScope.AGENT: "2 Agent",
    KeyScope.TASK: "3 Task",
    KeyScope.COMPARE: "4 Compare",
    KeyScope.RUNNING: "5 Run",
}


def key_table() -> str:
    """A row a key."""
    return "\n".join(["| keys | where | what |", "|---|---|---|", *_key_rows()])


def _key_rows() -> Iterator[str]:
    for key in KEYS:
        names = " ".join(f"`{key_text(each)}`" for each in key.keys)
        yield f"| {names} | {WHERE[key.where]} | {key.words} |"


def part(text: str, name: str) -> str:
    """What stands in the document under a name."""
    found = _place(name).search(text)
    assert found, f"{DOCUMENT.name}: no part {name!r}"
    return found[2].strip("\n")


def _with(text: str, name: str, content: str) -> str:
    return _place(name).sub(lambda found: f"{found[1]}\n{content}\n{found[3]}", text)


def _place(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->)(.*?)(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Writes the document anew."""
    text = _with(DOCUMENT.read_text(), "keys", key_table())
    for name in CAPTURES if sys.argv[1:] else ():
        rows = Path(sys.argv[1], f"browse-live-{name}.txt").read_text().rstrip().split("\n")
        shown_rows = "\n".join([*rows[:SHOWN], "…", rows[-1]])
        text = _with(text, f"live-{name}", f"```text\n{shown_rows}\n```")
    DOCUMENT.write_text(text)


if __name__ == "__main__":
    main()
