"""The reasons of unresolved verdicts, by kind: ``#`` stands for their numbers."""

import json
from collections import Counter
from collections.abc import Sequence

from dgm.analysis.failures import most_frequent
from dgm.archive.reasons import kind_of
from dgm.archive.run import Run

# The first condition avoids reading the JSON of every verdict. Half a surrogate pair is read here and not in SQL, which
# cannot hand it out.
_UNRESOLVED = """
SELECT seq, body FROM events WHERE seq <= ? AND kind = 'task_graded' AND body LIKE '%"verdict":"unresolved"%'
"""


def count_unresolved(run: Run) -> Sequence[tuple[str, int]]:
    """Return kinds of reasons with their counts, the commonest first; rare kinds together as ``others``."""
    counts: Counter[str] = Counter()
    gone = run.store.withdrawn(run.tree.seq)
    for seq, body in run.store.query(_UNRESOLVED, (run.tree.seq,)):
        graded = json.loads(body)
        if graded["verdict"] == "unresolved" and seq not in gone:
            counts[kind_of(graded["reason"])] += 1
    return most_frequent(counts)
