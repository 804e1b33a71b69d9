"""All kinds of change that the offline model may make to an agent's source.

The mixture is meant to resemble the changes of self-editing programs. Less than half of the weight helps by itself.
Some changes help only together with others, some change nothing, some do harm.
"""

from dgm.offline.catalogue_better import CONDITIONAL, HELPFUL
from dgm.offline.catalogue_other import HARMFUL, NEUTRAL
from dgm.offline.edits.kind import Kind

CATALOGUE: tuple[Kind, ...] = (*HELPFUL, *CONDITIONAL, *NEUTRAL, *HARMFUL)
