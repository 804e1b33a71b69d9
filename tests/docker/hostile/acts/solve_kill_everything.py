"""Kills every process that it may"""

import os
import signal

os.kill(-1, signal.SIGKILL)
