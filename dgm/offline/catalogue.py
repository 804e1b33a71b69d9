"""All kinds of change that the offline model may make to an agent's source.

The mixture is meant to resemble what self-editing programs do: less than half of the weight helps by itself,
some helps only together with something else, some changes nothing, some does harm.
"""

from dgm.offline.catalogue_better import CONDITIONAL, HELPFUL
from dgm.offline.catalogue_other import HARMFUL, NEUTRAL
from dgm.offline.edits.kind import Kind

CATALOGUE: tuple[Kind, ...] = (*HELPFUL, *CONDITIONAL, *NEUTRAL, *HARMFUL)
