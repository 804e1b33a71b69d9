"""``dgm`` on another day: ``python -m tests.agents.another_day WORD…``.

Its clock and the programs in its sandboxes show the time of a zone where it is another day than in UTC.
"""

import sys
import time
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from dgm.cli.main import main
from dgm.worker import workbench

clock, launch_record = time.time, workbench.launch_record
ZONE = "Pacific/Pago_Pago" if time.gmtime().tm_hour < 11 else "Pacific/Auckland"
AHEAD_S = datetime.now(ZoneInfo(ZONE)).utcoffset().total_seconds()

if __name__ == "__main__":
    time.time = lambda: clock() + AHEAD_S
    workbench.launch_record = lambda job, *rest: launch_record(replace(job, time_zone=ZONE), *rest)
    sys.exit(main())
