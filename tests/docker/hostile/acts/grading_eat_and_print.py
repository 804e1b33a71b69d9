"""The patched code prints without end and eats memory"""

import task

task.write(
    "sums/__init__.py",
    """
eaten = []
while True:
    print("y" * 1_000_000)
    eaten.append(bytearray(b"x") * 20_000_000)
""",
)
