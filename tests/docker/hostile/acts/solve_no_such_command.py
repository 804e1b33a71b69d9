"""Removes its own program and starts anew"""

import os
import pathlib

pathlib.Path("/agent/agent.py").unlink()
os.execv("/agent/agent.py", ["agent.py"])
