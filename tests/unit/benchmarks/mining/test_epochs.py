"""Environments that cannot be installed: tried again where the machine may be the cause, and else kept in mind."""

import asyncio

import pytest

from dgm.benchmarks.environments import FOLDER, NAME_LENGTH
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.packages import Installed, SandboxPython
from dgm.benchmarks.mining.stored_environments import CannotInstall
from dgm.domain import Entry


class Installs(Epochs):
    """Epochs whose installations end as told, in turn."""

    def __init__(self, folder, answers):
        journal = MiningJournal(folder / "journal.jsonl", {})
        super().__init__(None, folder, SandboxPython("3.13", "x86_64"), journal, None)
        self.answers = iter(answers)

    async def _install(self, files, day):
        answer = next(self.answers)
        if isinstance(answer, CannotInstall):
            raise answer
        place = self._suite / FOLDER / answer
        (place / "packages").mkdir(parents=True)
        (place / "environment.toml").write_text(
            'python = "3.13"\nmachine = ""\nroots = []\nrequirements = []\n'
        )
        return Installed(answer, "")


def ask(epochs, version):
    files = {"requirements.txt": Entry(f"x=={version}\n".encode())}
    return asyncio.run(epochs.environment(files, "2026-01-02")).name


def test_a_first_failure_is_forgotten(tmp_path):
    name = "0" * NAME_LENGTH
    epochs = Installs(tmp_path, [CannotInstall("no network"), name])
    with pytest.raises(CannotInstall):
        ask(epochs, 1)
    assert ask(epochs, 1) == ask(epochs, 1) == name


def test_a_later_failure_is_kept(tmp_path):
    epochs = Installs(tmp_path, ["0" * NAME_LENGTH, CannotInstall("there is none")])
    ask(epochs, 1)
    for _ in range(2):
        with pytest.raises(CannotInstall, match="there is none"):
            ask(epochs, 2)
