"""Python: pytest, with none of its settings, plug-ins of the folder or caches."""

import importlib.util
import sys

from exercise import Exercise, Outcome, Unusable

from chains.reports import junit


def test(exercise: Exercise) -> Outcome:
    """Runs the test files."""
    if importlib.util.find_spec("pytest") is None:
        raise Unusable("not installed here: pytest")
    settings = exercise.scratch / "pytest.ini"
    settings.write_text("[pytest]\n", encoding="ascii")
    report = exercise.scratch / "report.xml"
    options = ["-c", str(settings), "--rootdir", ".", "--noconftest", "-p", "no:cacheprovider", "--color=no"]
    files = [name for name in exercise.tests if name.endswith(".py")]
    code, _ = exercise.run(
        [sys.executable, "-B", "-m", "pytest", *options, f"--junitxml={report}", *files],
        {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    outcome = junit([report])
    return outcome if code == 0 or outcome.failed else Outcome()
