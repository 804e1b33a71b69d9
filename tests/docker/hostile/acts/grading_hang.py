"""The patched code never returns"""

import task

task.write("sums/__init__.py", "import time\nwhile True:\n    time.sleep(1)\n")
