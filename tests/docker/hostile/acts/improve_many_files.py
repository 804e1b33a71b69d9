"""Grows to 600 files"""

import task

for n in range(600):
    task.write(f"many/{n}.txt", str(n))
