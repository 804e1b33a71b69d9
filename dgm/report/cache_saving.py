"""The money that the providers' caches saved in a run."""

from dgm.archive.run import Run
from dgm.models.pricing import Prices
from dgm.search.run_settings import settings_of


def compute_cache_saving(run: Run) -> float:
    """Return the USD that cached input saved, over all models whose price is known; 0 if nothing was cached.

    The sum of many calls is priced like one call, at the rates of short calls.
    """
    cached = {model: usage for (_, model), usage in run.tree.spend_by.items() if usage.cached_tokens}
    if not cached:
        return 0.0
    settings = settings_of(run)
    prices = Prices.load(settings.models.prices, settings.models.compatible.base_url)
    return sum(
        prices.of(model).saved(usage)
        for (_, model), usage in run.tree.spend_by.items()
        if model in cached and prices.knows(model)
    )
