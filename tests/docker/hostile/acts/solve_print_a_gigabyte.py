"""Prints 1 GB"""

import sys

line = b"0123456789abcde\n" * 65536
for _ in range(1024):
    sys.stdout.buffer.write(line)
