"""Makes a child whose self-check prints escape sequences without end and fails"""

import task

task.write(
    "agent.py",
    "import sys\nfor _ in range(300):\n    print('\\x1b[2J\\x1b]0;owned\\x07' * 100_000)\nsys.exit(3)\n",
)
