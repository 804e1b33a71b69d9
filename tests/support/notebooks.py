"""The notebooks of ``examples/``: as a program without Jupyter (``python FILE NOTEBOOK``)."""

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
_WRITEFILE = "%%writefile "


def code_cells(notebook: Path) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Yield the source and the stored outputs of each cell with code."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"]), cell["outputs"]


def perform(notebook: Path) -> None:
    """Execute the cells in ``__main__``, and display what the last line of each one is."""
    names = sys.modules["__main__"].__dict__
    for source, _ in code_cells(notebook):
        if source.startswith(_WRITEFILE):
            head, text = source.split("\n", 1)
            Path(head.removeprefix(_WRITEFILE)).write_text(text, encoding="utf-8")
            continue
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, notebook.name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), notebook.name, "eval"), names)
            if value is not None:
                html = getattr(value, "_repr_html_", lambda: None)()
                print(f"display: {type(value).__name__} {len(html) if html else repr(value)}")


if __name__ == "__main__":
    sys.path[0] = ""
    perform(Path(sys.argv[1]))
