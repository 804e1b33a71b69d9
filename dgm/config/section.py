"""What every section of the settings is made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1, le=10**15)]
Positive = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
"""The bound keeps times below what timers take (1e9 s are 31 years)."""


class Section(BaseModel):
    """A frozen record; an unknown key is an error. The string under a field is its documentation."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
