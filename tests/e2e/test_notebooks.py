"""The notebooks of ``examples/``, without Jupyter: each cell runs, and each has the outputs of a real run."""

import json
import os
import subprocess
import sys

import pytest

from tests.support import notebooks

pytestmark = pytest.mark.sandbox


LONGER = ("comparing-policies", "first-search")
RUN = [
    pytest.param(path, marks=[pytest.mark.sampled] * (path.stem in LONGER), id=path.stem)
    for path in notebooks.NOTEBOOKS
]


@pytest.mark.parametrize("notebook", RUN)
def test_cells_run_from_top_to_bottom(notebook, tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, notebooks.__file__, notebook],
        env={name: value for name, value in os.environ.items() if name != "DGM_ARCHIVE"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    displayed = [output for _, cell in notebooks.code_cells(notebook) for output in cell if "data" in output]
    assert done.stdout.count("display: ") == len(displayed)


@pytest.mark.parametrize("notebook", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_short_complete_and_without_errors(notebook) -> None:
    cells = list(notebooks.code_cells(notebook))
    kinds = {output["output_type"] for _, outputs in cells for output in outputs}
    assert kinds <= {"execute_result", "stream"}
    displayed = json.dumps([outputs for _, outputs in cells])
    assert len(displayed) < 120_000
    assert "/tmp/" not in displayed and "/root" not in displayed
    counts = [
        cell["execution_count"]
        for cell in json.loads(notebook.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    assert counts == list(range(1, len(cells) + 1))
