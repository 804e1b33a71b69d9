"""Sleeps for ever"""

import task

task.sleep()
