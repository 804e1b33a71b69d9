"""The command line around a program: merged outputs, and a limit of processor time for each process."""

import subprocess

import pytest

from dgm.sandboxes.confined import SIGNALLED, limit_command

pytestmark = pytest.mark.starts_processes


@pytest.mark.parametrize("limit_s", [None, 5.0])
def test_both_outputs_of_a_program_are_merged_and_words_pass_as_they_are(limit_s):
    words = ["sh", "-c", 'echo "$0"; echo two >&2; echo three', "$1; no"]
    assert subprocess.check_output(limit_command(words, limit_s)) == b"$1; no\ntwo\nthree\n"


def test_each_process_has_the_limit():
    shown = subprocess.check_output(limit_command(["sh", "-c", "ulimit -S -t; ulimit -H -t"], 6.5))
    assert shown.split() == [b"8", b"9"]
    busy = limit_command(["sh", "-c", "while :; do :; done"], 0.0)
    ended = subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", *busy], check=False)
    assert ended.returncode == SIGNALLED
