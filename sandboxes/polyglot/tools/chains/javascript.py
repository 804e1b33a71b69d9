"""JavaScript: jest, with modules translated by babel; an exercise's own settings of both are not read."""

import json
from pathlib import Path

from exercise import Exercise, Outcome, Unusable, need

_MODULES = Path("/usr/share/nodejs")
_BABEL_JEST = _MODULES / "babel-jest"
_PRESET = _MODULES / "@babel" / "preset-env"


def test(exercise: Exercise) -> Outcome:
    """Runs the test files one after another."""
    need("node", "jest")
    missing = [str(each) for each in (_BABEL_JEST, _PRESET) if not each.exists()]
    if missing:
        raise Unusable(f"not installed here: {', '.join(missing)}")
    settings = exercise.scratch / "jest.json"
    settings.write_text(json.dumps(_settings(exercise)), encoding="utf-8")
    report = exercise.scratch / "report.json"
    options = ["--config", str(settings), "--ci", "--runInBand", "--no-watchman", "--colors=false"]
    said = ["--json", f"--outputFile={report}", "--forceExit"]
    code, _ = exercise.run(["jest", *options, *said, "--runTestsByPath", *_files(exercise)], {"CI": "1"})
    outcome = _outcome(report)
    return outcome if code == 0 or outcome.failed else Outcome()


def _files(exercise: Exercise) -> "list[str]":
    return [str(exercise.folder / name) for name in exercise.tests if name.endswith(".js")]


def _settings(exercise: Exercise) -> "dict[str, object]":
    babel = {
        "configFile": False,
        "babelrc": False,
        "presets": [[str(_PRESET), {"targets": {"node": "current"}}]],
    }
    return {
        "rootDir": str(exercise.folder),
        "testMatch": _files(exercise),
        "transform": {r"\.[cm]?js$": [str(_BABEL_JEST), babel]},
        "cacheDirectory": str(exercise.scratch / "cache"),
        "testEnvironment": "node",
    }


def _outcome(report: Path) -> Outcome:
    """A report that is missing or cut off, because a solution ended the process, counts for nothing."""
    try:
        results = json.loads(report.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Outcome()
    passed, failed = results["numPassedTests"], results["numFailedTests"]
    if results["numRuntimeErrorTestSuites"] and not failed:
        return Outcome(built=False)
    return Outcome(passed, failed)
