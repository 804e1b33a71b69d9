"""A process that appends to the log it is given and says what is durable; it is there to be killed."""

import sys
from pathlib import Path

from dgm.archive.events import AgentBorn
from dgm.archive.log import Log
from dgm.domain import ActionId, AgentId, Born, CommitId

with Log.open(Path(sys.argv[1]), write=True) as store:
    print("ready", flush=True)
    while True:
        agent = AgentId(store.last)
        recorded = store.append(AgentBorn(ActionId(0), agent, Born((), "op", CommitId("0" * 40), "x" * 500)))
        print(recorded.seq, flush=True)
