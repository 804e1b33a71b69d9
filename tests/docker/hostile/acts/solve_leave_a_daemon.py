"""Ends at once and leaves a daemon that goes on to change the workdir"""

import os
import time

import task

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        n = 0
        while True:
            n += 1
            task.attempt(task.write, f"late/{n % 50}.txt", str(n))
            time.sleep(0.001)
