"""Takes everybody's rights away from the workdir"""

import os

import task

task.write("new/file.txt", "unreadable")
for parent, folders, files in os.walk(task.WORKDIR, topdown=False):
    for name in [*folders, *files]:
        os.chmod(os.path.join(parent, name), 0)
os.chmod(task.WORKDIR, 0)
