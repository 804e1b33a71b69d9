"""The failing assertion of a test in Rust."""

import pytest

from dgm.benchmarks.mining.rust_symptoms import find_rust_symptom

TESTS = """\
mod tests {
    use super::*;

    const WANT: i32 = 2;

    fn expect() -> i32 {
        WANT
    }

    fn unused() {}

    // As issue 7 says.
    #[test]
    fn halves() {
        // Why.
        let text = "fn expect() {";
        assert_eq!(half(4), expect(), "{text}");
    }
}
"""
SAID = """
thread 'tests::halves' (57) panicked at src/lib.rs:24:9:
assertion `left == right` failed
  left: 1
 right: 2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
TEST = "src/lib.rs::tests::halves"


def test_the_body_is_told_with_what_it_uses_and_the_panic_without_its_place():
    symptom = find_rust_symptom(SAID, TEST, [TESTS])
    assert symptom.code == (
        "const WANT: i32 = 2;\n\nfn expect() -> i32 {\n    WANT\n}\n\n"
        'let text = "fn expect() {";\nassert_eq!(half(4), expect(), "{text}");'
    )
    assert symptom.error == "assertion `left == right` failed\n  left: 1\n right: 2"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("thread 'a' panicked at src/a.rs:1:2:\nindex out of bounds\n", "panicked: index out of bounds"),
        ("thread 'a' panicked at 'no such', src/a.rs:1:2\n", "panicked: no such"),
        ("note: test did not panic as expected at src/a.rs:1:2", "It did not panic."),
        ('Error: "no such"\n', 'Error: "no such"'),
    ],
)
def test_other_ends_are_told(said, error):
    assert find_rust_symptom(said, TEST, [TESTS]).error == error


@pytest.mark.parametrize(
    ("said", "files", "message"),
    [
        ("\n", [TESTS], "no error"),
        (SAID, [], "no test file shows"),
        (SAID, [TESTS, TESTS.replace("half(4)", "half(5)")], "several test files"),
        (SAID, [TESTS.replace("// Why.\n", "x();\n" * 70)], "more than 60 lines"),
    ],
)
def test_what_cannot_be_told_is_refused(said, files, message):
    with pytest.raises(ValueError, match=message):
        find_rust_symptom(said, TEST, files)
