"""Test tools of JavaScript and TypeScript: which there are, and what runs for them in the sandbox.

The sandbox's side is ``tool_runner.py`` and the folder ``test_tools``. Each tool reports through a descriptor under a
nonce, and runs two tests of dgm's own at the end of each file, which must fail.
"""

from pathlib import Path

TOOLS = ("node", "vitest", "jest", "mocha")
TOOL_CONFIGURATION = (
    "package.json", ".npmrc", "node_modules", "vitest.config.*", "vitest.workspace.*", "vite.config.*",
    "jest.config.*", "jest.setup.*", ".mocharc.*", "mocha.opts", "babel.config.*", ".babelrc", ".babelrc.*",
    ".swcrc", "tsconfig.json", "tsconfig.*.json", ".env", ".env.*",
)  # fmt: skip
"""Files through which a patch could configure its own tests."""
TOOL_TEST_FILES = (
    "test", "tests", "__tests__", "spec", "specs", "e2e", "__mocks__", "__snapshots__", "__fixtures__",
    *(f"*{mark}{word}.*" for word in ("test", "spec") for mark in "._-"), "test.*", "test-*.*",
)  # fmt: skip
"""Files and folders that are tests by their names."""
TOOL_RESTORED = (*TOOL_CONFIGURATION, *TOOL_TEST_FILES)
_HERE = Path(__file__).parent
TOOL_PARTS = tuple(
    sorted(file for file in (_HERE / "test_tools").iterdir() if file.suffix in (".cjs", ".js", ".mjs"))
)
"""Files that run in the tools themselves."""
TOOL_PROGRAMS = (_HERE / "tool_runner.py", _HERE / "command_watcher.py")
