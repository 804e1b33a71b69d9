"""The notebooks of ``examples/`` in a real kernel: what they display is of the same kinds as what is stored."""

import pytest

from tests.connect.executed_notebooks import execute
from tests.support.notebooks import NOTEBOOKS, code_cells

pytestmark = [pytest.mark.connect, pytest.mark.sandbox]
pytest.importorskip("nbclient")


def kinds_of(outputs):
    return [sorted(output.get("data", {output["output_type"]: ""})) for output in outputs]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_kernel_displays_what_is_stored(notebook, tmp_path) -> None:
    executed = [cell.outputs for cell in execute(notebook, tmp_path).cells if cell.cell_type == "code"]
    stored = [outputs for _, outputs in code_cells(notebook)]
    assert [kinds_of(outputs) for outputs in executed] == [kinds_of(outputs) for outputs in stored]
