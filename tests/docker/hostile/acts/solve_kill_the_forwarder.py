"""Kills the forwarder and whatever else it may signal, then stays"""

import os
import signal

import task

os.setsid() if os.getpid() != os.getsid(0) else None
for number in ("", "x"):
    task.attempt(os.kill, os.getppid(), signal.SIGKILL)
task.attempt(task.ask, "is anybody there?")
task.sleep()
