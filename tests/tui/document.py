"""What docs/browser.md takes from the program: the table of keys."""

from collections.abc import Iterator

from dgm.tui.keys import KEYS, Where, shown

WHERE = {
    Where.EVERYWHERE: "everywhere",
    Where.LIST: "lists and texts",
    Where.TREE: "1 Tree, 3 Task",
    Where.AGENT: "2 Agent",
    Where.TASK: "3 Task",
    Where.COMPARE: "4 Compare",
    Where.RUNNING: "5 Run",
}


def key_rows() -> Iterator[str]:
    """The rows of the table."""
    for key in KEYS:
        names = " ".join(f"`{shown(each)}`" for each in key.keys)
        yield f"| {names} | {WHERE[key.where]} | {key.words} |"
