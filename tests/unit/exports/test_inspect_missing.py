"""Without Inspect's package, one line says what to install."""

import sys

import pytest

from dgm.archive.run import Run
from dgm.errors import UserError
from dgm.exports.inspect_logs import write_logs
from tests.support.runs.packable import ALICE

pytestmark = pytest.mark.starts_processes


def test_without_inspect_one_line_says_what_to_install(paid_folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with Run.open(paid_folder) as run, pytest.raises(UserError, match=r"pip install 'dgm\[inspect\]'"):
        write_logs(run, None, tmp_path / "logs", ALICE)
    assert not (tmp_path / "logs").exists()
