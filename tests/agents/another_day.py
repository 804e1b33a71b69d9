"""``dgm`` on another day: ``python -m tests.agents.another_day WORD…``.

Its clock is a day off, and the programs in its sandboxes are in a zone where it is that day.
"""

import sys
import time
from dataclasses import replace

from dgm.cli.main import main
from dgm.worker import workbench

clock, launch_record = time.time, workbench.launch_record
ZONE, DAYS = ("Pacific/Pago_Pago", -1) if time.gmtime().tm_hour < 11 else ("Pacific/Auckland", 1)

if __name__ == "__main__":
    time.time = lambda: clock() + DAYS * 86400
    workbench.launch_record = lambda job, *rest: launch_record(replace(job, time_zone=ZONE), *rest)
    sys.exit(main())
