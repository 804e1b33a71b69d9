"""The patch adds its own unittest.py, fractions.py and json/"""

import task

code = "import os\nos.write(1, b'OK')\nos._exit(0)\n"
for name in (
    "unittest.py",
    "unittest/__init__.py",
    "fractions.py",
    "json/__init__.py",
    "tests/unittest.py",
    "importlib/__init__.py",
):
    task.attempt(task.write, name, code)
