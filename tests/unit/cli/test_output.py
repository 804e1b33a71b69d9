"""What reaches the terminal: patches, complaints, help."""

import re
import subprocess
import sys

import pytest

from dgm.cli.commands import COMMANDS
from dgm.cli.complaint import complain
from dgm.errors import ArchiveBusy, Infrastructure, UserError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UserError("run 'x': wrong"), 2),
        (ArchiveBusy("being written"), 2),
        (Infrastructure("disk full"), 1),
        (KeyboardInterrupt(), 130),
        (ExceptionGroup("", [Infrastructure("disk full")]), 1),
        (SystemExit(5), 5),
    ],
)
def test_complaints_are_one_line_with_a_code(error, code, capsys):
    assert complain(error) == code
    said = capsys.readouterr().err
    assert len(said.splitlines()) == (0 if isinstance(error, SystemExit) else 1)
    assert "Traceback" not in said


HELPS = """
import os, sys
import asyncio, cyclopts, numpy, pydantic, rich.console, scipy.special, sqlite3
for name in sys.argv[1:]:
    if not os.fork():
        from dgm.cli.main import main
        try:
            main([*name.split(), "--help"])
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(end.code)
    print(f"ended {name} {os.wait()[1]}", flush=True)
"""
"""A process of its own for each command, in which none of dgm's modules was imported for another one."""


@pytest.mark.starts_processes
def test_every_command_has_a_help_of_its_own():
    done = subprocess.run(
        [sys.executable, "-c", HELPS, *COMMANDS], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    *helps, rest = re.split(r"^ended (.+) (\d+)\n", done.stdout, flags=re.MULTILINE)
    assert rest == ""
    ended = {
        name: (text, code) for text, name, code in zip(helps[::3], helps[1::3], helps[2::3], strict=True)
    }
    assert ended.keys() == COMMANDS.keys()
    for name, (text, code) in ended.items():
        assert (text.startswith(f"Usage: dgm {name} "), code) == (True, "0"), name


def test_a_complaint_neutralises_what_it_quotes(capsys):
    complain(UserError("agent.toml: unknown key '\x1b]0;owned\x07\r'"))
    assert capsys.readouterr().err == "dgm: agent.toml: unknown key '\\x1b]0;owned\\x07\\x0d'\n"
