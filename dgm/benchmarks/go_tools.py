"""The tests of Go: what runs them in the sandbox, and what is put back before them.

The sandbox's side is ``go_runner.py``. Each test function gets a name that only that run knows, and beside each stands
one of dgm's own under a name of the same look, which must fail.
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
    Path(__file__).with_name(f"{name}.py")
    for name in ("go_runner", "go_marks", "go_output", "tool_runner", "command_watcher")
)
