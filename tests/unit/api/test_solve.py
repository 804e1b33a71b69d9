"""What becomes of an agent's change, and why there is none."""

import pytest

from dgm.api.solving import Solution, _explain_empty, _report_output
from dgm.domain import Usage
from dgm.errors import UserError
from dgm.protocols import Completed, Work
from dgm.views.values import UsageView
from dgm.worker.solving import SolveResult

PATCH = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+\xff\n"


def make_solution(folder, patch=PATCH):
    return Solution(
        agent=0,
        repository=str(folder),
        patch=patch.decode("utf-8", "replace"),
        why_empty="",
        changed=("x",),
        applied=False,
        patch_file=None,
        left_out={},
        absent=(),
        agent_exit_code=0,
        timed_out=False,
        output="",
        calls=0,
        spend=UsageView.of(Usage()),
        patch_bytes=patch,
    )


@pytest.mark.parametrize(
    ("completed", "more", "calls", "why"),
    [
        (Completed(3, b""), {}, 1, "exits 3"),
        (Completed(124, b"", timed_out=True), {}, 1, "ran out of time"),
        (Completed(0, b""), {"refused": ("budget_spent",)}, 1, "refused (budget_spent)"),
        (Completed(0, b""), {"own_failure": "it asked elsewhere"}, 0, "it asked elsewhere"),
        (Completed(0, b""), {"left_out": {"big": 9}}, 1, "too large"),
        (Completed(0, b""), {}, 0, "without asking its model"),
        (Completed(0, b""), {}, 2, "after 2 model calls and changed no file"),
    ],
)
def test_reason_of_an_empty_change_is_reported(completed, more, calls, why):
    work = Work({}, b"", completed, **more)
    assert why in _explain_empty(SolveResult(work, Usage(calls=calls), ()), Usage(calls=calls))


def test_only_the_end_of_an_output_is_reported():
    lines = []
    _report_output(b"".join(b"%d\n" % number for number in range(10_000)), lines.append)
    assert lines[1:] == [f"  {number}" for number in range(9_980, 10_000)]
    lines.clear()
    _report_output(b" \n", lines.append)
    assert lines == []


def test_a_change_is_saved_byte_for_byte_in_a_new_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    files = {make_solution(tmp_path / "my repo").save() for _ in range(2)}
    assert [file.read_bytes() for file in files] == [PATCH] * 2
    assert all(file.name.startswith("my repo-") for file in files)
    assert "patch_bytes" not in make_solution(tmp_path).model_dump(mode="json")


@pytest.mark.starts_processes
def test_a_change_that_does_not_apply_is_saved(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "x").write_text("other\n")
    with pytest.raises(UserError, match="it is kept in"):
        make_solution(tmp_path).apply()
    assert (tmp_path / "x").read_text() == "other\n"


def test_a_change_that_cannot_be_saved_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "dgm").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(UserError, match="the change cannot be kept"):
        make_solution(tmp_path).save()
