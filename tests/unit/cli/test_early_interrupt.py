"""Ctrl-C while the program still loads."""

import sys

import pytest

from dgm.__main__ import main


class Interrupting:
    """A finder of modules that is interrupted when it looks for some of them."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name, path, target=None):
        if name in self.names:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("names", "printed"),
    [
        (["dgm.cli.main"], ""),
        (["dgm.cli.commands"], "dgm: interrupted\n"),
        (["dgm.cli.commands", "dgm.cli.complaint"], ""),
    ],
)
def test_an_interrupt_while_modules_load_ends_with_its_code(names, printed, monkeypatch, capsys):
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(*names), *sys.meta_path])
    monkeypatch.setattr(sys, "argv", ["dgm", "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, *capsys.readouterr()) == (130, "", printed)
