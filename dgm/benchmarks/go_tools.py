"""The tests of Go: what runs them in the sandbox, and what is put back before them.

The sandbox's side is ``go_runner.py``. One test of dgm's own in each package must fail.
"""

from pathlib import Path

GO = "go"
GO_CONFIGURATION = ("go.mod", "go.sum", "go.work", "go.work.sum", "go.env", "vendor")
"""Files through which a patch could configure its own tests, or bring packages that they use."""
GO_TEST_FILES = (
    "*_test.go", "testdata", "testutil", "testutils", "testhelper", "testhelpers", "testenv", "internal/assert",
    "internal/require", "internal/test*",
)  # fmt: skip
"""Files and folders that are tests, or help them, by their names."""
GO_RESTORED = (*GO_CONFIGURATION, *GO_TEST_FILES)
GO_PROGRAMS = tuple(
    Path(__file__).with_name(f"{name}.py") for name in ("go_runner", "tool_runner", "command_watcher")
)
