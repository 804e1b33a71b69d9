"""Leaves its source as it is"""

import task

task.ask("hello")
