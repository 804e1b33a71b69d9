"""What a person on Windows is told."""

import sys

import pytest

from dgm.cli.main import main


def test_windows_itself_is_refused_in_a_line_before_anything_is_imported(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        main(["doctor"])
    said = capsys.readouterr().err
    assert (ended.value.code, said.count("\n")) == (2, 1)
    assert "WSL2" in said
