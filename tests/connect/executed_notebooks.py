"""The notebooks of ``examples/`` in a real kernel; as a program it stores their outputs."""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.notebooks import NOTEBOOKS


def execute(notebook: Path, folder: Path) -> Any:
    """Return the notebook with the outputs of a kernel that works in a folder."""
    import nbclient
    import nbformat

    os.environ.pop("DGM_ARCHIVE", None)
    document = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(document, timeout=500, resources={"metadata": {"path": str(folder)}})
    client.execute()
    for cell in document.cells:
        cell.metadata.pop("execution", None)
    return document


if __name__ == "__main__":
    for path in [path for path in NOTEBOOKS if path.stem in sys.argv[1:] or len(sys.argv) == 1]:
        with tempfile.TemporaryDirectory() as place:
            executed = execute(path, Path(place))
        executed.metadata["language_info"] = {"name": "python"}
        path.write_text(json.dumps(executed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
