"""Base class and types of every section of the settings."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_COUNT, MOST = 10**15, 1e9
"""Bounds that only a mistake or a hostile file exceeds; they keep times below what timers take (1e9 s: 31 years)."""


def _check_most(value: float) -> float:
    if value > (MOST_COUNT if isinstance(value, int) else MOST):
        raise ValueError("larger than any use of it")
    return value


Count = Annotated[int, Field(ge=1), AfterValidator(_check_most)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), AfterValidator(_check_most)]


class Section(BaseModel):
    """A frozen record; an unknown key is an error. The string under a field is its documentation.

    ``dgm.config.listing`` reads these strings from the source: pydantic would do so at each start of the program.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
