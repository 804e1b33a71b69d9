"""Which report on a test command counts, and which reward in it."""

import hmac
import json
from base64 import b64encode

import pytest

from dgm.benchmarks.command_report import CommandReport, find_reward, read_report

KEY = b"k" * 32
SAID = {"code": 0, "signal": 0, "left": 0, "writes": 1, "refused": "", "rewards": {}}


def sealed(key=KEY, **said):
    text = json.dumps({**SAID, **said})
    return f"\ndgm-command-report {hmac.new(key, text.encode(), 'sha256').hexdigest()} {text}\n".encode()


def test_report_with_its_seal_counts_and_is_no_output():
    output, report = read_report(
        b"1 passed" + sealed(rewards={"reward.txt": b64encode(b"1\n").decode()}), KEY
    )
    assert output == b"1 passed"
    assert report == CommandReport(0, writes=1, rewards={"reward.txt": b"1\n"})


@pytest.mark.parametrize(
    "output",
    [b"1 passed\n", sealed(key=b"other" * 8), b"\ndgm-command-report x {}\n", sealed().replace(b": 1,", b": 2,")],
)  # fmt: skip
def test_report_without_its_seal_is_output(output):
    assert read_report(output, KEY) == (output, None)


def test_report_that_was_printed_before_is_output():
    output, report = read_report(sealed(key=b"forged" * 5, code=0) + sealed(code=1), KEY)
    assert b"dgm-command-report" in output
    assert report.code == 1


def test_reward_of_a_command_that_ended_by_itself_counts():
    assert find_reward(CommandReport(1, rewards={"reward.txt": b" 0.5\n"})) == ("reward.txt", 0.5)


def test_two_files_that_say_the_same_are_one_reward():
    assert (
        find_reward(CommandReport(0, rewards={"reward.txt": b"1", "reward.json": b'{"reward": 1.0}'}))[1] == 1
    )


def test_process_that_was_left_behind_is_no_second_writer():
    assert find_reward(CommandReport(0, left=2, writes=1, rewards={"reward.txt": b"1"}))[1] == 1
    assert find_reward(CommandReport(0, left=0, writes=2, rewards={"reward.txt": b"1"}))[1] == 1


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ({"code": 137, "signal": 9}, "the tests were ended by signal 9, so that their reward does not count"),
        ({"code": 143}, "the tests were ended by signal 15"),
        ({"left": 1, "writes": 2}, "the reward was written several times, and 1 processes of the tests still ran"),
        ({"left": 1, "writes": -1}, "the reward was written several times"),
        ({"refused": "reward.txt is no file of its own"}, "the tests left no reward that can be read: reward.txt is"),
        ({"rewards": {"reward.txt": b"1", "reward.json": b"0"}}, "reward.txt says 1 and reward.json says 0"),
        ({"rewards": {"reward.txt": b"1\n0\n"}}, r"reward.txt: holds no number: '1\\n0'"),
        ({"code": 3, "rewards": {}}, "the tests ended with exit status 3 and left no reward"),
    ],
)  # fmt: skip
def test_reward_that_is_not_surely_the_commands_does_not_count(report, reason):
    with pytest.raises(ValueError, match=f"^{reason}"):
        find_reward(CommandReport(**{"code": 0, "rewards": {"reward.txt": b"1"}, "writes": 1} | report))
