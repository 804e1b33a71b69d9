"""Files that answer for a child that waits."""

import pytest

from dgm.archive.approvals import FOLDER, MOST_BYTES, ApprovalAnswer, UnreadableApproval, read_answer
from dgm.domain import ActionId


def answer(folder, text):
    (folder / FOLDER).mkdir()
    (folder / FOLDER / "1").write_bytes(text)
    return read_answer(folder, ActionId(1))


def test_an_answer_of_the_greatest_size_is_read(tmp_path):
    assert answer(tmp_path, b"yes".ljust(MOST_BYTES)) == ApprovalAnswer(True)


def test_a_larger_file_is_no_answer_whatever_it_begins_with(tmp_path):
    with pytest.raises(UnreadableApproval, match=f"not a file of at most {MOST_BYTES} bytes"):
        answer(tmp_path, b"yes".ljust(MOST_BYTES + 1))
