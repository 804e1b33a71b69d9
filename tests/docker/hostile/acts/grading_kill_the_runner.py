"""The patched code kills the runner that started it"""

import task

task.write(
    "sums/__init__.py",
    "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos.kill(-1, signal.SIGKILL)\n",
)
