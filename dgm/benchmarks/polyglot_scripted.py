"""Hidden tests in Python and JavaScript: run as they stand, by pytest and jest with reporters of our own."""

import ast
import json
import re
from collections.abc import Sequence

from dgm import syntax
from dgm.benchmarks.polyglot_plan import GRADERS, TESTS_S, Plan, Room, Step, entry, text
from dgm.benchmarks.polyglot_reports import CONTROL
from dgm.domain import Entry, Snapshot

_PYTHON_SKIP = re.compile(
    r"^[ \t]*@(?:unittest\.skip|pytest\.mark\.skip)\b(?:\([^\n]*\))?[ \t]*\n", re.MULTILINE
)


_JS_SKIP = re.compile(r"\b(?:x(test|it|describe)|(test|it|describe)\.skip)(?=\s*[(.])")
_JS_TEST = re.compile(
    r"^[ \t]*(?:test|it|xtest|xit)(?:\.skip|\.only)?\(\s*(['\"])((?:\\.|(?!\1).)*)\1", re.MULTILINE
)


_JS_MODULES = "/usr/share/nodejs"


def python_names(tests: Snapshot) -> Sequence[str]:
    """``test_…`` or ``Class.test_…``."""
    names: list[str] = []
    for file in tests.values():
        try:
            body = syntax.parse(file.data).body
        except (SyntaxError, ValueError):
            continue
        names += [
            node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
        ]
        classes = [node for node in body if isinstance(node, ast.ClassDef)]
        names += [f"{each.name}.{test}" for each in classes if _collected(each) for test in _methods(each)]
    return names


def _collected(node: ast.ClassDef) -> bool:
    return node.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in node.bases)


def _methods(node: ast.ClassDef) -> list[str]:
    return [
        each.name
        for each in node.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test")
    ]


def python_plan(room: Room, tests: Snapshot) -> Plan:
    """The control is a file of its own; the reporter learns the mark before graded code is imported."""
    ready = {name: entry(_PYTHON_SKIP.sub("", text(file))) for name, file in tests.items()}
    control = f"{room.mark}_test.py"
    ready[control] = entry(
        "import unittest\n\n\nclass Control(unittest.TestCase):\n"
        f'    def test_{room.mark}{CONTROL}(self):\n        self.assertEqual("this", "that")\n'
    )
    results = f"{room.scratch}/results"
    assignment = {"nonce": room.mark, "results": results, "files": [*tests, control]}
    step = Step(
        "tests",
        ["python3", "-s", "-B", f"{room.luggage}/polyglot_pytest.py"],
        TESTS_S,
        {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "0"},
        json.dumps(assignment),
    )
    return Plan(
        ready, [step], results, {"polyglot_pytest.py": Entry((GRADERS / "polyglot_pytest.py").read_bytes())}
    )


def js_names(tests: Snapshot) -> Sequence[str]:
    """Titles that are plain text."""
    titles = (name for file in tests.values() for _, name in _JS_TEST.findall(text(file)))
    return [name for name in titles if "\\" not in name]


def js_plan(room: Room, tests: Snapshot) -> Plan:
    """The control stands in the test file itself, since each file has globals of its own."""
    control = f"\n;test('{room.mark}{CONTROL}', () => {{ expect(1).toBe(2); }});\n"
    ready = {
        name: entry(_JS_SKIP.sub(lambda found: found.group(1) or found.group(2), text(file)) + control)
        for name, file in tests.items()
    }
    results = f"{room.scratch}/results"
    babel = {
        "configFile": False,
        "babelrc": False,
        "presets": [[f"{_JS_MODULES}/@babel/preset-env", {"targets": {"node": "current"}}]],
    }
    config = {
        "rootDir": room.workdir,
        "testMatch": [f"{room.workdir}/{name}" for name in tests],
        "transform": {r"\.[cm]?js$": [f"{_JS_MODULES}/babel-jest", babel]},
        "cacheDirectory": f"{room.scratch}/cache",
        "testEnvironment": "node",
    }
    reporter = (GRADERS / "polyglot_jest.js").read_text(encoding="utf-8")
    reporter = reporter.replace("@NONCE@", room.mark).replace("@RESULTS@", results)
    argv = [
        "jest",
        f"--config={json.dumps(config)}",
        f"--reporters={room.luggage}/polyglot_jest.js",
        "--ci",
        "--no-watchman",
        "--colors=false",
        # With a bound on idle memory the tests run in a worker process even where there is one file of them.
        "--maxWorkers=2",
        "--workerIdleMemoryLimit=2GB",
    ]
    step = Step("tests", argv, TESTS_S, {"CI": "1"})
    return Plan(ready, [step], results, {"polyglot_jest.js": entry(reporter)})
