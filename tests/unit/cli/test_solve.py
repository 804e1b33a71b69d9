"""What ``dgm solve`` says of an agent that fails, and where a change goes that nobody took."""

import pytest

from dgm.cli import solve
from dgm.domain import Usage
from dgm.errors import UserError
from dgm.protocols import Completed, Work
from dgm.sessions import repairing


def work(completed, patch=b"", **more):
    return Work({}, patch, completed, **more)


@pytest.mark.parametrize(
    ("completed", "said"),
    [
        (Completed(3, b"x"), "the agent exits 3\n"),
        (Completed(124, b"x", timed_out=True), "the agent ran out of time\n"),
        (Completed(137, b"x", out_of_memory=True), "the agent ran out of memory\n"),
        (Completed(0, b"x"), ""),
    ],
)
def test_the_output_of_an_agent_that_leaves_nothing_is_shown(capsys, completed, said):
    solve._tell_ending(work(completed))
    assert capsys.readouterr().err == f"the end of the agent's output:\n  x\n{said}"


def test_the_output_is_its_end_and_moves_no_cursor(capsys):
    noise = b"".join(b"%d\n" % n for n in range(10_000))
    output = noise + "\x1b[31mKeyError\x1b[0m: \u202e'x'\x07\x1b]0;title\x07\n".encode()
    solve._tell_ending(work(Completed(1, output)))
    said = capsys.readouterr().err
    assert "  KeyError: \\x202e'x'\\x07\n" in said
    assert "  9999\n" in said and "  9900\n" not in said
    assert "\x1b" not in said


def test_an_agent_that_fixed_it_and_ended_well_has_nothing_to_say(capsys):
    solve._tell_ending(work(Completed(0, b"chatter"), b"diff"))
    assert capsys.readouterr().err == ""


def test_what_was_left_out_is_said_in_one_line(capsys):
    solve._tell_ending(work(Completed(0, b""), b"diff", left_out={"out\n\x1b[2J": 200_000_000}))
    assert capsys.readouterr().err == "left out of the patch: 1 new file of 200,000,000 bytes (out??[2J)\n"


def test_the_cost_is_said_even_where_it_is_nothing():
    assert (
        repairing.cost_text(Usage(calls=3, input_tokens=1200, output_tokens=34))
        == "3 model calls, 1,234 tokens, 0.0000 USD"
    )


def test_a_change_is_kept_byte_for_byte_in_a_file_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    files = {repairing.save_patch(tmp_path / "my repo", b"a\r\n\xff") for _ in range(2)}
    assert [file.read_bytes() for file in files] == [b"a\r\n\xff"] * 2
    assert all(
        file.parent == tmp_path / "dgm" / "patches" and file.name.startswith("my repo-") for file in files
    )


def test_a_change_that_cannot_be_kept_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "dgm").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(UserError, match="the change cannot be kept"):
        repairing.save_patch(tmp_path, b"a")
