"""Makes a child whose self-check forks and never ends"""

import task

task.write(
    "agent.py", "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
)
