"""The statistics that decide and report: rates and their intervals, paired comparisons, the price of choosing.

Special functions are scipy's. scipy is imported where it is first needed, never with this package: ``scipy.special``
takes 0.3 s to load and ``scipy.stats`` a second. A command that uses neither should not pay for that.
"""

from dgm.stats.better import chance_better
from dgm.stats.chosen import best_of_many
from dgm.stats.paired import (
    McNemar,
    holm,
    matched_interval,
    mcnemar,
    mcnemar_power,
    paired_bootstrap,
    sign_flip,
    tasks_needed,
)
from dgm.stats.rates import beta_quantile, clopper_pearson, lower_bound, lower_bounds, wilson

__all__ = [
    "McNemar",
    "best_of_many",
    "beta_quantile",
    "chance_better",
    "clopper_pearson",
    "holm",
    "lower_bound",
    "lower_bounds",
    "matched_interval",
    "mcnemar",
    "mcnemar_power",
    "paired_bootstrap",
    "sign_flip",
    "tasks_needed",
    "wilson",
]
