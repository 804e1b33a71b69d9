"""Runners of named tests by their names in ``[tests]``: programs for the sandbox, and files that are put back."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dgm.benchmarks import command_tools, go_tools, script_tools

PYTEST = "pytest"
METADATA = ("*.dist-info", "*.egg-info", "*.pth")
"""Files and folders by which a patch could have Python or pytest load a plug-in of its own."""
CONFIGURATION = (
    "conftest.py", "sitecustomize.py", "sitecustomize", "usercustomize.py", "usercustomize", "pytest.ini",
    ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "pyproject.toml", "setup.cfg", *METADATA,
)  # fmt: skip
"""Files through which a patch could configure its own tests."""
TEST_FILES = ("tests", "test", "test_*.py", "*_test.py", "tests.py")
"""Files and folders that are tests by their names."""


@dataclass(frozen=True, slots=True)
class Runner:
    """The programs that run tests of one kind."""

    program: str
    """File of dgm that the sandbox's Python starts; it is among ``programs`` or goes into every sandbox."""
    restored: tuple[str, ...]
    """Patterns of tests and configuration that are put back before the tests, where a task does not say it."""
    programs: tuple[Path, ...] = ()
    """Files that go beside it into the sandbox."""
    parts: tuple[Path, ...] = ()
    """The same, in the folder ``test_tools``."""


_COMMAND = Runner(
    "command_runner.py",
    command_tools.COMMAND_RESTORED,
    command_tools.COMMAND_PROGRAMS,
)
_REPORT = Runner(
    "report_runner.py",
    command_tools.REPORT_RESTORED,
    command_tools.REPORT_PROGRAMS,
)
_SCRIPTS = Runner(
    "tool_runner.py",
    script_tools.TOOL_RESTORED,
    script_tools.TOOL_PROGRAMS,
    script_tools.TOOL_PARTS,
)
RUNNERS: Mapping[str, Runner] = {
    PYTEST: Runner("named_runner.py", (*CONFIGURATION, *TEST_FILES)),
    **dict.fromkeys(script_tools.TOOLS, _SCRIPTS),
    go_tools.GO: Runner("go_runner.py", go_tools.GO_RESTORED, go_tools.GO_PROGRAMS),
    command_tools.COMMAND: _COMMAND,
    command_tools.REPORT: _REPORT,
}
