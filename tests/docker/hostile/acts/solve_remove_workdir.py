"""Removes its workdir"""

import os
import shutil

import task

os.chdir("/")
shutil.rmtree(task.WORKDIR)
