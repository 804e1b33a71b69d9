"""Modules of tests in files of the code, found by their braces."""

import pytest

from dgm.benchmarks.command_runner import CommandRun
from dgm.benchmarks.hidden_parts import (
    find_parts,
    has_tests,
    lay_over,
    mark_tests,
    redefined_assertions,
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


def test_names_that_stand_once_get_a_mark():
    text = "#[test]\nfn one() {}\n#[test]\n#[should_panic]\npub fn two() { one(); }\nfn three() {}\n"
    marked, names = mark_tests(text, "m")
    assert names == ["two"]
    assert marked == text.replace("fn two", "fn m_two")


def test_assertions_with_another_meaning_are_found():
    text = (
        "macro_rules! assert_eq { () => {} }\npub use own::nothing as assert;\nmacro_rules! assert_near { }\n"
    )
    assert redefined_assertions(text) == {"assert_eq", "assert"}
    assert not redefined_assertions("// macro_rules! assert\nassert_eq!(a as u8, b);\nuse own::assert_eq;\n")


@pytest.mark.parametrize(("file", "problem"), [("b.rs", "assert! is defined anew"), ("a.rs", "")])
def test_a_patch_that_gives_an_assertion_another_meaning_is_told(tmp_path, file, problem):
    false = "macro_rules! assert { () => {} }\n"
    for name, text in {
        "job/start/a.rs": false,
        "work/a.rs": false,
        f"work/{file}": f"{false}// more\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    task = {"tests": [], "restored": [], "deleted": [], "tool": {"parts": []}}
    run = CommandRun(task, tmp_path / "work")
    run.lay_out(tmp_path / "job")
    assert run.record()["problem"].endswith(problem)
    assert bool(run.record()["problem"]) == bool(problem)


def test_helpers_have_no_tests():
    assert not has_tests("pub fn help() {} // #[test]\n")
    assert has_tests("#[tokio::test]\nasync fn a() {}\n")
