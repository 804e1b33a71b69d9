"""Ignores SIGTERM and every other signal that it can, in a session of its own"""

import os
import signal

import task

for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
task.sleep()
