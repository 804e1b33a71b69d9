"""Replaces its source folder by a link to /etc"""

import os
import shutil

import task

os.chdir("/")
shutil.rmtree(task.WORKDIR)
os.symlink("/etc", task.WORKDIR)
