"""Verification of benchmarks that are no suites, and of patches that end their process with status 0."""

import asyncio

import pytest

from dgm.archive.repository import patch as patch_between
from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.verification import (
    AT_ONCE,
    AT_THE_END,
    TaskVerification,
    find_early_ending,
    list_excluded_defects,
    make_canaries,
    verify,
)
from dgm.domain import Entry, TaskId, Verdict
from dgm.errors import UserError
from dgm.protocols import Grade

RIGHT = b"right"


class Plain:
    """Grades by looking at the patch."""

    version = "1"

    def __init__(self, name="plain", good=(RIGHT,)):
        self.name = name
        self.good = good

    async def grade(self, task, patch, labels):
        if patch in self.good:
            return Grade(Verdict.RESOLVED, "all is well", 1.0)
        return Grade(Verdict.UNRESOLVED, "1 test fails", 0.0, failed=("a", "b", "c", "d"))


class Referenced(Plain):
    def reference(self, task):
        return RIGHT


class Incomplete(Referenced):
    problems = ("folder/x: has no config.json",)


def said(benchmark, task="t"):
    return asyncio.run(verify(benchmark, TaskId(task), {}))


def test_reference_that_passes_where_nothing_else_does_is_sound():
    assert said(Referenced()) == []


def test_reference_that_fails_is_told_with_a_few_tests():
    assert said(Referenced(good=())) == ["the reference fix is unresolved: 1 test fails (a, b, c)"]


def test_empty_patch_that_passes_is_told():
    assert said(Referenced(good=(RIGHT, b""))) == ["an empty patch is resolved: all is well"]


def test_tests_are_run_on_the_untouched_workspace_too():
    class Lenient(Referenced):
        async def grade(self, task, patch, labels):
            return await Plain(good=(patch or None,)).grade(task, patch, labels)

    assert said(Lenient()) == ["doing nothing is resolved: all is well"]


def test_part_of_a_mixed_benchmark_is_asked():
    other = Incomplete("other", good=())
    other.version = "2"
    mixed = MixedBenchmark([Referenced(), other])
    assert said(mixed, "other/t") == ["the reference fix is unresolved: 1 test fails (a, b, c)"]
    assert said(mixed, "plain/t") == []
    assert list_excluded_defects(mixed) == ["folder/x: has no config.json"]


def test_benchmark_without_references_is_an_error():
    with pytest.raises(UserError, match="'plain' has no reference fixes to verify"):
        said(Plain())


class Commanded:
    """A suite whose command takes code that ends its process, with and without tests of changed values."""

    def __init__(self, plainly=(), all_the_same=()):
        self.plainly, self.all_the_same = plainly, all_the_same

    def workspace(self, task):
        return {"a.py": Entry(b"x = 1\n")}

    async def examine_unperturbed(self, task, patch, labels):
        return self._grade(patch, self.plainly)

    async def grade(self, task, patch, labels):
        return self._grade(patch, self.all_the_same)

    def _grade(self, patch, taken):
        when = AT_THE_END if b"atexit" in patch else AT_ONCE
        return Grade(Verdict.RESOLVED if when in taken else Verdict.UNRESOLVED, "", 0.0)


def early_ending(**taken):
    fix = patch_between({"a.py": Entry(b"x = 1\n")}, {"a.py": Entry(b"x = 2\n")})
    return asyncio.run(find_early_ending(Commanded(**taken), TaskId("t"), fix, {}))


@pytest.mark.starts_processes
def test_command_that_takes_no_early_ending_is_sound():
    assert early_ending() == TaskVerification([])


@pytest.mark.starts_processes
@pytest.mark.parametrize("when", [AT_ONCE, AT_THE_END])
def test_command_that_takes_an_early_ending_is_not_sound(when):
    (defect,) = early_ending(plainly=(when,), all_the_same=(when,)).defects
    assert defect.startswith(
        f"code passes that ends its process with status 0 {when}: run the code under test in a "
    )


@pytest.mark.starts_processes
def test_early_ending_that_changed_tests_catch_is_a_note():
    said = early_ending(plainly=(AT_ONCE, AT_THE_END), all_the_same=())
    assert (said.defects, len(said.notes)) == ([], 1)
    assert "but for the tests with changed values" in said.notes[0]


pytestmark = pytest.mark.starts_processes

OLD = {
    "a.py": Entry(b"x = 1\n"),
    "b.py": Entry(b"y = 1\n"),
    "c.js": Entry(b"z = 1\n"),
    "d.sh": Entry(b"w=1\n"),
}


def canaries(**changed):
    after = {name.replace("_", "."): Entry(text) for name, text in changed.items()}
    return make_canaries(OLD, patch_between(OLD, {**OLD, **after}))


def test_each_file_that_the_fix_touches_ends_its_process_first():
    at_once, at_the_end = canaries(a_py=b"x = 2\n", c_js=b"z = 2\n")
    assert (at_once.when, at_the_end.when) == (AT_ONCE, AT_THE_END)
    assert b"b.py" not in at_once.patch
    for line in (b"+import os\n+os._exit(0)\n x = 1\n", b"+process.exit(0);\n z = 1\n"):
        assert line in at_once.patch
    assert b"+atexit.register(os._exit, 0)\n x = 1\n" in at_the_end.patch


def test_file_that_the_fix_adds_counts_too():
    assert b"+++ b/new.py\n@@ -0,0 +1,2 @@\n+import os\n+os._exit(0)\n" in canaries(new_py=b"x\n")[0].patch


def test_imports_from_the_future_stay_the_first():
    before = {"a.py": Entry(b'"""Doc."""\nfrom __future__ import annotations\nx = 1\n')}
    fix = patch_between(before, {"a.py": Entry(b"x = 2\n")})
    assert (
        b" from __future__ import annotations\n+import os\n+os._exit(0)\n x"
        in make_canaries(before, fix)[0].patch
    )


@pytest.mark.parametrize("changed", [{"d_sh": b"w=2\n"}, {}])
def test_fix_in_another_language_has_none(changed):
    assert canaries(**changed) == []
