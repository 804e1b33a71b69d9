"""The patched code ends its process with status 0 at import"""

import task

task.write("sums/__init__.py", "import os\nos._exit(0)\n")
