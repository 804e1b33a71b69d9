"""Makes a child that never asks the model"""

import task

task.write("agent.py", "import sys\nsys.exit(0)\n")
