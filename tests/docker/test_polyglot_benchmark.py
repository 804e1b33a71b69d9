"""The shipped exercises in real containers without network, in every language whose image is here.

The stub fails, the reference passes, and none of the tricks that end or fake a test run passes for one.
"""

import asyncio
import functools
import os

import pytest

from dgm.archive.repository import patch
from dgm.benchmarks.polyglot import PolyglotBenchmark
from dgm.benchmarks.polyglot_exercises import TRACKS
from dgm.benchmarks.verification import verify
from dgm.config import PolyglotSettings
from dgm.domain import Entry, TaskId, Verdict
from dgm.errors import UserError
from dgm.paths import asset
from dgm.sandboxes import recipes
from dgm.sandboxes.choose import choose

pytestmark = [pytest.mark.docker, pytest.mark.sandbox]

LABELS = {"dgm.run": f"test-polyglot-{os.getpid()}"}
NAMES = ("luggage-tag", "tide-table", "toll-road")

EXITS = {
    "cpp": (
        "luggage-tag",
        {
            "luggage_tag.cpp": '#include <cstdio>\n#include <cstdlib>\nstatic int end = (std::puts("All tests passed"),'
            " std::fflush(stdout), std::_Exit(0), 0);\nint use() { return end; }\n"
            '#include "luggage_tag.h"\n'
            "namespace luggage_tag { std::string label(const std::string& a, int) { return a; }\n"
            "bool is_valid(const std::string&) { return true; } }\n",
            "luggage_tag.h": "#pragma once\n#include <string>\nnamespace luggage_tag {\n"
            "std::string label(const std::string&, int);\nbool is_valid(const std::string&);\n}\n",
        },
    ),
    "go": (
        "tide-table",
        {
            "tide_table.go": 'package tidetable\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc init() {\n'
            '\tfor _, name := range []string{"Nothing", "OneTurn", "StandingWater", "Ends", "TwoTides"} {\n'
            '\t\tfmt.Printf("\\x16=== RUN   Test%s\\n\\x16--- PASS: Test%s (0.00s)\\n", name, name)\n\t}\n'
            '\tfmt.Println("PASS")\n\tos.Exit(0)\n}\n\n'
            "func Highs(h []int) []int { return nil }\n\nfunc Lows(h []int) []int { return nil }\n"
        },
    ),
    "java": (
        "toll-road",
        {
            "src/main/java/TollRoad.java": "class TollRoad {\n  static { System.out.println("
            '"[         6 tests successful      ]"); System.exit(0); }\n'
            "  void enter(int g) throws WrongGateException {}\n"
            "  int leave(int g) throws WrongGateException { return 62; }\n"
            "  int getTotal() { return 0; }\n  int getLongest() { return 0; }\n}\n"
        },
    ),
    "javascript": (
        "tide-table",
        {
            "tide-table.js": "console.log('Tests: 7 passed, 7 total');\nprocess.exit(0);\n"
            "export const highs = () => [];\nexport const lows = () => [];\n"
        },
    ),
    "python": (
        "luggage-tag",
        {"luggage_tag.py": "import os\n\nos.write(1, b'9 passed in 0.01s\\n')\nos._exit(0)\n"},
    ),
    "rust": (
        "toll-road",
        {
            "src/lib.rs": "#[derive(Debug, PartialEq, Eq)]\npub enum Error { OnTheRoad, NotOnTheRoad, NoSuchGate }\n"
            "pub struct Account;\nfn end() -> ! {\n    use std::io::Write;\n"
            '    let said = "test result: ok. 6 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\\n";\n'
            "    std::io::stdout().write_all(said.as_bytes()).unwrap();\n    std::process::exit(0)\n}\n"
            "impl Account {\n    pub fn new() -> Self { end() }\n"
            "    pub fn enter(&mut self, _: i64) -> Result<(), Error> { end() }\n"
            "    pub fn leave(&mut self, _: i64) -> Result<i64, Error> { end() }\n"
            "    pub fn total(&self) -> i64 { end() }\n    pub fn longest(&self) -> i64 { end() }\n}\n"
        },
    ),
}
"""A solution that says that all is well and ends the process with 0."""

TAMPERS = {
    "cpp": (
        "tide-table",
        {
            "tide_table.h": "#pragma once\n#include <cstddef>\n#include <vector>\n#include <catch2/catch.hpp>\n"
            "#undef REQUIRE\n#define REQUIRE(...) (void)(__VA_ARGS__)\nnamespace tide_table {\n"
            "inline std::vector<std::size_t> highs(std::vector<int>) { return {}; }\n"
            "inline std::vector<std::size_t> lows(std::vector<int>) { return {}; }\n}\n"
        },
    ),
    "go": (
        "tide-table",
        {
            "tide_table.go": 'package tidetable\n\nimport "flag"\n\nfunc Highs(h []int) []int { return nil }\n\n'
            "func Lows(h []int) []int { return nil }\n\n"
            "var _ = func() int { flag.CommandLine.Usage = nil; return 0 }()\n\nfunc init() { go keep() }\n\n"
            'func keep() {\n\tfor flag.Lookup("test.run") == nil {\n\t}\n\t_ = flag.Set("test.run", "^$")\n}\n'
        },
    ),
    "javascript": (
        "toll-road",
        {
            "toll-road.js": "const good = new Proxy(() => good, { get: () => good });\n"
            "globalThis.expect = () => good;\nexport class Account {\n  enter() {}\n  leave() {}\n}\n"
        },
    ),
    "python": (
        "tide-table",
        {
            "tide_table.py": "import unittest\n\nunittest.TestCase.assertEqual = lambda *_: None\n"
            "highs = lows = lambda heights: []\n"
        },
    ),
    "rust": (
        "tide-table",
        {
            "Cargo.toml": '[package]\nname = "tide_table"\nversion = "1.0.0"\nedition = "2021"\n\n'
            '[[test]]\nname = "tide-table"\npath = "src/lib.rs"\n'
        },
    ),
}
"""A solution that changes what judges it."""


def quick_ones(languages):
    """One language always; the others, whose images take minutes to build, with ``make test-all``."""
    return [one if one == "python" else pytest.param(one, marks=pytest.mark.minutes) for one in languages]


@functools.cache
def engine():
    """The engine, or why there is none."""
    try:
        return choose("docker")
    except UserError as error:
        return str(error)


def benchmark(language, **settings):
    """The shipped exercises of a language; a skip where its image is not here and need not be."""
    found = engine()
    must = os.environ.get("DGM_REQUIRE_DOCKER") == "1"
    if isinstance(found, str):
        (pytest.fail if must else pytest.skip)(f"NOT RUN: {found}")
    image = recipes.load(f"polyglot-{language}").tag
    if image not in found.task_images.list_recipes() and not must:
        pytest.skip(f"NOT RUN: no image for {language}: dgm doctor --build polyglot-{language}")
    chosen = PolyglotSettings(languages=(language,), **settings)
    return PolyglotBenchmark(asset("benchmarks", "polyglot"), found, chosen)


def graded(language, name, files):
    """The grade of a workspace with these files in place of its own."""
    opened = benchmark(language)
    task = TaskId(f"{language}-{name}")
    start = opened.workspace(task)
    after = {**start, **{path: Entry(text.encode()) for path, text in files.items()}}
    return asyncio.run(opened.grade(task, patch(start, after), LABELS))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("language", quick_ones(TRACKS))
def test_stub_fails_and_reference_passes(language, name):
    opened = benchmark(language)
    assert asyncio.run(verify(opened, TaskId(f"{language}-{name}"), LABELS)) == []


@pytest.mark.parametrize("language", quick_ones(EXITS))
def test_ending_the_process_with_0_passes_nothing(language):
    grade = graded(language, *EXITS[language])
    assert grade.verdict is Verdict.UNRESOLVED
    assert grade.passed == ()


@pytest.mark.parametrize("language", quick_ones(TAMPERS))
def test_changing_what_judges_passes_nothing(language):
    grade = graded(language, *TAMPERS[language])
    assert grade.verdict is Verdict.UNRESOLVED


@pytest.mark.minutes
def test_a_program_that_does_not_compile_is_explained_to_a_second_try():
    grade = graded("go", "tide-table", {"tide_table.go": "package tidetable\n\nfunc Highs( {\n"})
    assert grade.verdict is Verdict.UNRESOLVED
    assert b"tide_table.go:3" in grade.log
