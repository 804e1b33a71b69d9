"""Checks the models of a command before it spends money, and reports their cost and abilities."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.archive.run import Run
from dgm.config import Settings
from dgm.protocols import Checked
from dgm.search.model_checks import check_models, prices_of
from dgm.show.safe import one_line


def check_and_tell(settings: Settings, run: Run | None = None) -> Sequence[Checked]:
    """Make one small real call to every model of the settings and say on stderr what it took.

    Args:
        settings: name the models.
        run: a run whose earlier findings on its models are known; None: nothing is known.

    Raises:
        UserError: a person must act.
        Infrastructure: a model does not answer now.
    """
    known: Mapping[str, Mapping[str, Any]] = run.tree.model_facts.abilities if run else {}
    checks = asyncio.run(check_models(settings, known))
    tell_checks(settings, checks)
    return checks


def tell_checks(settings: Settings, checks: Sequence[Checked]) -> None:
    """Print on stderr the cost and the findings of the models' checks."""
    prices = prices_of(settings)
    for one in checks:
        usd = prices[one.model].cost(one.usage)
        learned = "".join(f"; {one_line(words, 300)}" for words in one.words)
        sys.stderr.write(
            f"model {one.model}: answers (a check of {one.usage.tokens:,} tokens, {usd:.4f} USD){learned}\n"
        )
