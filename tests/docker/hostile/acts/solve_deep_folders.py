"""Nests 3,000 folders, deeper than any path may be long"""

import os

import task

os.chdir(task.WORKDIR)
for _ in range(3000):
    os.mkdir("deep")
    os.chdir("deep")
with open("file.txt", "w") as file:
    file.write("far down\n")
