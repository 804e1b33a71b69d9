"""The file of a run's open calls: written in one step, and never a reason to fail."""

import pytest

from dgm.archive.garbage import is_own_part
from dgm.archive.live_calls import FILE, LiveCalls, read_live_calls, remove_live_calls, write_live_calls


def test_calls_are_read_as_they_were_written_and_gone_when_removed(tmp_path):
    for calls in (LiveCalls(2, 1, 1700000000.5), LiveCalls(0, 0, None)):
        write_live_calls(tmp_path, calls)
        assert read_live_calls(tmp_path) == calls
    (left,) = tmp_path.iterdir()
    assert is_own_part(left)
    remove_live_calls(tmp_path)
    remove_live_calls(tmp_path)
    assert read_live_calls(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"under_way": 1, "waiting": 1, "oldest_wait": NaN}',
        '{"under_way": 1, "waiting": 1, "oldest_wait": 1e300}',
        '{"under_way": "x", "waiting": 1, "oldest_wait": null}',
    ],
)
def test_what_cannot_be_read_counts_as_nothing(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    assert read_live_calls(tmp_path) is None


def test_a_folder_that_cannot_be_written_is_an_error_of_the_system(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        write_live_calls(tmp_path / "gone", LiveCalls(1, 0, None))
