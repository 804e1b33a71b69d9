"""A suite of one task with pytest tests by name, and a sandbox that is a folder with this Python's packages."""

import json
import sys
import sysconfig
from contextlib import asynccontextmanager
from pathlib import Path

from dgm.archive.repository import AgentRepository
from dgm.benchmarks.environments import FOLDER, NAME_LENGTH, PACKAGES, environment_digest
from dgm.domain import Entry, TaskId
from dgm.protocols import Completed
from tests.support.folder_sandbox import Folder, FolderEngine

TASK = TaskId("halves-are-whole")
PYTHON = "{}.{}".format(*sys.version_info[:2])
START = {
    "src/sums.py": "def half(number):\n    return number // 3\n\n\ndef twice(number):\n    return 2 * number\n",
    "tests/conftest.py": "import contextlib\n\nimport pytest\n\n"
    "with contextlib.suppress(ImportError):\n    import sums\n\n\n"
    "@pytest.fixture\ndef four():\n    return 4\n",
    "tests/test_sums.py": "from sums import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n",
    "tests/test_old.py": "import gone\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-q'\n",
}
HIDDEN = {
    "tests/test_sums.py": "from sums import half, twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n\n\n"
    "def test_half(four):\n    assert half(four) == 2\n\n\ndef test_half_of_ten():\n    assert half(10) == 5\n",
}
FAIL = ("tests/test_sums.py::test_half", "tests/test_sums.py::test_half_of_ten")
PASS = ("tests/test_sums.py::test_twice",)
FIX = """\
diff --git a/src/sums.py b/src/sums.py
--- a/src/sums.py
+++ b/src/sums.py
@@ -1,6 +1,6 @@
 def half(number):
-    return number // 3
+    return number // 2
\x20
\x20
 def twice(number):
     return 2 * number
"""


def entries(files):
    return {name: Entry(text.encode()) for name, text in files.items()}


def make_named_suite(
    folder: Path,
    *,
    python: str = PYTHON,
    more: str = "",
    hidden: str = HIDDEN["tests/test_sums.py"],
    fail=FAIL,
) -> Path:
    """Writes the suite; returns its folder. ``hidden`` is the text of its test file."""
    packages = folder / FOLDER / "new" / PACKAGES
    packages.mkdir(parents=True)
    (packages / "lent.py").write_text("WHAT = 'a package'\n")
    (packages.parent / "environment.toml").write_text(f'python = "{python}"\nroots = ["src", "."]\n')
    name = environment_digest(packages.parent)[:NAME_LENGTH]
    packages.parent.rename(folder / FOLDER / name)
    commit = AgentRepository.create(folder / "repository.git").commit(entries(START), ())
    files = {
        "suite.toml": 'name = "mined"\ndescription = "one task"\nlicense = "MIT"\n',
        f"tasks/{TASK}/task.toml": f"""\
split = "search"
commit = "{commit}"
environment = "{name}"
fail_to_pass = {json.dumps(fail)}
pass_to_pass = {json.dumps(PASS)}
{more}
[tests]
runner = "pytest"
deleted = ["tests/test_old.py"]

[provenance]
kind = "history"
commit = "{commit}"
date = "2026-11-27"
modules = ["src/sums.py"]
""",
        f"tasks/{TASK}/problem.md": "half(4) is 1\n",
        f"tasks/{TASK}/solution.patch": FIX,
        f"tasks/{TASK}/tests/tests/test_sums.py": hidden,
    }
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    return folder


class PythonFolder(Folder):
    """Runs this Python, and finds pytest in its packages."""

    async def exec(self, argv, *, stdin=b"", env=None, **more):
        if "-c" in argv:
            return Completed(0, f"{PYTHON} x86_64\n".encode())
        env = {**(env or {}), "PYTHONPATH": sysconfig.get_paths()["purelib"]}
        return await super().exec([f"/{sys.executable}", *argv[1:]], stdin=stdin, env=env, **more)


class PythonFolders(FolderEngine):
    """Opens such folders."""

    @asynccontextmanager
    async def open(self, spec):
        async with super().open(spec) as folder:
            (folder.root / "job").mkdir()
            (folder.root / sys.executable.lstrip("/")).parent.mkdir(parents=True)
            (folder.root / sys.executable.lstrip("/")).symlink_to(sys.executable)
            yield PythonFolder(folder.root)
