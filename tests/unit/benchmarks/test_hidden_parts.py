"""Modules of tests in files of the code, found by their braces."""

import pytest

from dgm.benchmarks.hidden_parts import (
    find_parts,
    has_tests,
    lay_over,
    split_parts,
)

CODE = """\
fn braces<'a>(text: &'a str) -> char {
    // }} not here
    /* nor { /* here { */ */
    let _ = ("{\\"", r#"{"}"#, b'{', '\\'', '{');
    '}'
}
"""
TESTS = """\
// Why.
#[cfg(test)]
#[allow(dead_code)]
mod tests {
    use super::*;
    #[test]
    fn holds() { assert_eq!(braces("}"), '}'); }
}
"""


def test_code_and_tests_are_divided_whatever_strings_and_comments_hold():
    code, tests = split_parts(f"{CODE}\n{TESTS}\nfn last() {{}}\n")
    assert code.rstrip("\n") == f"{CODE}\nfn last() {{}}"
    assert tests == TESTS.rstrip("\n")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            '#[cfg(all(test, feature = "std"))]\npub(crate) mod a { fn x() {} }\n#[cfg(test)] mod b {}',
            ["a", "b"],
        ),
        ("eat!(\n#[cfg(test)]\nmod tests {}\n);\neat![\n#[cfg(test)]\nmod b {}\n];\n", []),
        ("mod inner {\n#[cfg(test)]\nmod tests {}\n}\n", []),
        ("#[cfg(not(test))]\nmod a {}\n#[cfg(all(not(test), unix))]\nmod b {}\n", []),
        ('const A: &str = "#[cfg(test)] mod tests { }";\n// #[cfg(test)] mod c {}\n', []),
        ("#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod open {\n", []),
    ],
)
def test_only_modules_of_tests_at_the_top_count(text, names):
    assert [part.name for part in find_parts(text)] == names


def test_tests_of_one_version_go_over_the_code_of_another():
    old = f"fn a() {{}}\n\n{TESTS}\nfn b() {{}}\n"
    new = TESTS.replace("holds", "breaks").rstrip("\n")
    assert lay_over(old, new) == old.replace("holds", "breaks")
    assert lay_over("fn a() {}\n", new) == f"fn a() {{}}\n\n{new}\n"
    assert split_parts(lay_over(old, ""))[1] == ""
    assert lay_over(old, split_parts(old)[1]) == old


def test_helpers_have_no_tests():
    assert not has_tests("pub fn help() {} // #[test]\n")
    assert has_tests("#[tokio::test]\nasync fn a() {}\n")
