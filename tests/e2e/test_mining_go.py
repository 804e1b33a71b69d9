"""A suite mined out of a small repository in Go: what is in it."""

import asyncio
import json
from pathlib import Path

import pytest

from dgm.benchmarks.verification import verify
from dgm.domain import Split
from tests.support.each_engine import find_engine, mine_steps

pytestmark = [pytest.mark.sandbox, pytest.mark.slow, pytest.mark.minutes]
CODE = "package sums\n\n// Half returns half of a number.\nfunc Half(number int) int { return number / {} }\n"
TESTS = """\
package sums

import "testing"

func TestHalf(t *testing.T) {
	for _, one := range []struct {
		name string
		in, out int
	}{
		{
			name: "of none",
			in: 0,
		},
		{
			name: "of four",
			in: 4,
			out: {},
		},
		{
			name: "of one",
			in: 1,
		},
	} {
		t.Run(one.name, func(t *testing.T) {
			if got := Half(one.in); got != one.out {
				t.Errorf("got %d, want %d", got, one.out)
			}
		})
	}
}

func TestNone(t *testing.T) {
	if Half(0) != 0 {
		t.Fatal("none is not none")
	}
}
"""
LICENSE = "Permission is hereby granted, free of charge\n"


def files(code, tests):
    return {"sums/half.go": code, "sums/half_test.go": tests}


WRONG = files(CODE.replace("{}", "4"), TESTS.replace("{},", "1,", 1))
RIGHT = files(CODE.replace("{}", "2"), TESTS.replace("{},", "2,", 1))
STEPS = (
    ("begin", {"go.mod": "module example.org/sums\n\ngo 1.18\n", "LICENSE": LICENSE, **WRONG}),
    ("Halve by two", RIGHT),
    ("Explain", {name: f"// Why.\n\n{text}" for name, text in RIGHT.items()}),
)


@pytest.fixture(scope="module")
def mined(tmp_path_factory, engine_name):
    engine = find_engine(engine_name, "go")
    folder = tmp_path_factory.mktemp("mined")
    return mine_steps(folder, STEPS, engine)


def test_the_change_with_a_test_is_a_task_that_is_verified(mined):
    suite, report = mined
    assert report["tasks"] == {"history": 1}
    (task,) = suite.tasks(Split.SEARCH)
    tests = suite.record(task.id).tests
    place = "sums/half_test.go::"
    assert set(tests.fail_to_pass) == {f"{place}TestHalf", f"{place}TestHalf/of_four"}
    assert f"{place}TestNone" in tests.pass_to_pass
    assert tests.runner == "go"
    assert 'name: "of four"' in task.prompt
    assert 'name: "of one"' in task.prompt
    assert "got 1, want 2" in task.prompt
    assert asyncio.run(verify(suite, task.id, {"dgm.run": "test"})) == []
    lines = [json.loads(line) for line in Path(report["suite"], "mined.jsonl").read_text().splitlines()]
    assert [line.get("reason", "a task") for line in lines] == [
        "the code changes in comments or blanks only",
        "a task",
        "the first commit",
    ]
