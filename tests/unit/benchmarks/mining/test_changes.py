"""Steps of a history that change code and tests in one file."""

import pytest

from dgm.archive.repository import apply_patch
from dgm.benchmarks.languages import Language
from dgm.benchmarks.mining.changes import restored_patterns, take_apart_rust
from dgm.benchmarks.mining.history import History
from dgm.benchmarks.mining.scan import Candidate, Left, scan
from dgm.domain import Entry
from tests.support.small_history import make_history

pytestmark = pytest.mark.starts_processes

FILE = """\
pub fn half(n: i32) -> i32 {{
    n / {}
}}

#[cfg(test)]
mod tests {{
    // {}
    #[test]
    fn a() {{}}
}}
"""


def entries(**texts):
    return {name.replace("_", "/", 1) + ".rs": Entry(text.encode()) for name, text in texts.items()}


def test_a_step_is_a_candidate_if_it_changes_both_in_one_file(tmp_path):
    steps = (
        ("begin", {"src/lib.rs": FILE.format(4, 1)}),
        ("both", {"src/lib.rs": FILE.format(2, 2)}),
        ("tests alone", {"src/lib.rs": FILE.format(2, 3)}),
        ("code alone", {"src/lib.rs": FILE.format(3, 3)}),
        ("a comment", {"src/lib.rs": "// Why.\n" + FILE.format(3, 4)}),
    )
    history = History(make_history(tmp_path / "repo", steps))
    found = list(scan(history, history.units(), Language.RUST))
    said = [one.reason if isinstance(one, Left) else one.tests for one in found]
    assert said == [
        "the code changes in comments or blanks only",
        "changes no test",
        "changes no code",
        ("tests/src/lib.rs",),
        "the first commit",
    ]
    candidate = found[3]
    assert isinstance(candidate, Candidate)
    assert (candidate.code, [one.lines for one in candidate.unit.changes]) == (("src/lib.rs",), [2, 2])


def test_the_fix_has_the_code_and_the_hidden_file_the_tests():
    before = entries(src_lib=FILE.format(4, 1), tests_all="// 1\n")
    after = entries(src_lib=FILE.format(2, 2), tests_all="// 2\n", src_new=FILE.format(1, 1))
    change = take_apart_rust(before, after, ("src/lib.rs",), restored_patterns(Language.RUST, before))
    assert change.parts == ("src/lib.rs",)
    assert change.hidden["src/lib.rs"].data.decode() == FILE.format(2, 2).partition("\n\n")[2].rstrip("\n")
    assert change.hidden["tests/all.rs"] == after["tests/all.rs"]
    assert "src/new.rs" not in change.hidden
    fixed = apply_patch(before, change.fix)
    assert fixed["src/lib.rs"].data.decode() == FILE.format(2, 1)
    assert fixed["tests/all.rs"] == before["tests/all.rs"]
    tested = apply_patch(before, change.test_patch)
    assert tested["src/lib.rs"].data.decode() == FILE.format(4, 2)
