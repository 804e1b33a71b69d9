"""Writes the known fix, then stays for a second."""

import time

import task

task.write("sums/__init__.py", task.FIX)
time.sleep(3)
