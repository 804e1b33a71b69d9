"""Hides an agent's packages from the programs that it starts; the ``sitecustomize`` of its Python.

A sandbox has this file as ``sitecustomize.py`` at the front of ``PYTHONPATH``. A Python that begins with it has the
packages on ``sys.path`` already. It takes the variable out of its environment, and the packages' commands out of the
search path: tests of the repository under work, which may be those of another Python, then never see them, only the
packages of their task. Any Python may read this,
so it uses nothing new.
"""

import importlib
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  (pathlib would slow every start)

if _HERE in sys.path:
    sys.path.remove(_HERE)
os.environ.pop("PYTHONPATH", None)
_COMMANDS = [path + "/bin" for path in os.environ.get("DGM_PACKAGES", "").split(os.pathsep) if path]
if _COMMANDS and "PATH" in os.environ:
    _KEPT = [path for path in os.environ["PATH"].split(os.pathsep) if path not in _COMMANDS]
    os.environ["PATH"] = os.pathsep.join(_KEPT)
if "DGM_TASK_PATHS" in os.environ:
    # Packages of the task: for all programs but the agent's own, which its repository could mislead.
    os.environ["PYTHONPATH"] = os.environ["DGM_TASK_PATHS"]
    if os.environ.pop("DGM_AGENT_PID", "") != str(os.getpid()):
        sys.path.extend(os.environ["PYTHONPATH"].split(os.pathsep))
# The machine's own file of this name, which this one stands before.
_SELF = sys.modules.pop("sitecustomize", None)
try:
    importlib.import_module("sitecustomize")
except ImportError:
    # Python looks for the module that it has just run, and complains at every start if it is not there.
    if _SELF is not None:
        sys.modules["sitecustomize"] = _SELF
