"""A suite mined out of a small repository in Rust with tests beside the code."""

import asyncio

import pytest

from dgm.benchmarks.verification import verify
from dgm.domain import Split
from tests.support.each_engine import find_engine, mine_steps

pytestmark = [pytest.mark.sandbox, pytest.mark.slow, pytest.mark.minutes]
CODE = """\
pub mod deep;

pub fn half(number: i32) -> i32 {
    number / DIVISOR // {
}

// Why.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        assert_eq!(half(4), WANTED);
    }

    #[test]
    fn none() {
        assert_eq!(half(0), 0);
    }
}
"""
DEEP = """\
pub fn third(number: i32) -> i32 {
    number / 3
}

#[cfg(test)]
mod tests {
    #[test]
    fn thirds() {
        assert_eq!(super::third(9), 3);
    }
}
"""
TESTS = "use sums::half;\n\n#[test]\nfn six() {\n    assert_eq!(half(6), WANTED + 1);\n}\n"


def files(divisor, wanted):
    texts = {"src/lib.rs": CODE, "tests/halves.rs": TESTS}
    return {name: text.replace("DIVISOR", divisor).replace("WANTED", wanted) for name, text in texts.items()}


BEGIN = {
    "Cargo.toml": '[package]\nname = "sums"\nversion = "0.1.0"\nedition = "2021"\n',
    "LICENSE": "Permission is hereby granted, free of charge\n",
    "src/deep.rs": DEEP,
}
RIGHT = files("2", "2")
STEPS = (
    ("begin", {**BEGIN, **files("4", "1")}),
    ("Halve by two", RIGHT),
    ("Explain", {name: f"// Why.\n{text}" for name, text in RIGHT.items()}),
)


@pytest.fixture(scope="module")
def mined(tmp_path_factory, engine_name):
    engine = find_engine(engine_name, "cargo")
    folder = tmp_path_factory.mktemp("mined")
    return mine_steps(folder, STEPS, engine)


def test_tests_beside_the_code_are_hidden_and_the_rest_is_the_fix(mined):
    suite, report = mined
    assert report["tasks"] == {"history": 1}
    (task,) = suite.tasks(Split.SEARCH)
    tests = suite.record(task.id).tests
    assert tests.fail_to_pass == ("src/lib.rs::tests::halves", "tests/halves.rs::six")
    assert tests.pass_to_pass == ("src/deep.rs::tests::thirds", "src/lib.rs::tests::none")
    assert tests.parts == ("src/lib.rs",)
    changed = [line for line in suite.reference(task.id).decode().split("\n") if line[:1] in ("+", "-")]
    assert changed[2:] == ["-    number / 4 // {", "+    number / 2 // {"]
    assert "assert_eq!(half(4), 2);" in task.prompt
    assert asyncio.run(verify(suite, task.id, {"dgm.run": "test"})) == []
