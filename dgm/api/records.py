"""Tables for programs: rows with named columns, as a data frame where one is wanted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dgm.errors import UserError


@dataclass(frozen=True, slots=True)
class Records:
    """Rows of a table with their columns' names."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def _repr_html_(self) -> str:
        from dgm.render.html.notebook import table_html

        return table_html(self.columns, self.rows)

    def to_pandas(self) -> Any:  # noqa: ANN401  (a pandas.DataFrame)
        """Return a data frame; needs pandas.

        Raises:
            UserError: pandas is not installed.
        """
        return _imported("pandas").DataFrame.from_records(list(self.rows), columns=list(self.columns))

    def to_polars(self) -> Any:  # noqa: ANN401  (a polars.DataFrame)
        """Return a data frame; needs polars.

        Raises:
            UserError: polars is not installed.
        """
        return _imported("polars").DataFrame(list(self.rows), schema=list(self.columns), orient="row")


def records_of(rows: Sequence[Mapping[str, Any]]) -> Records:
    """Return documents that share their keys as a table; without any, one without columns."""
    return Records(list(rows[0]) if rows else [], [tuple(row.values()) for row in rows])


def _imported(name: str) -> Any:  # noqa: ANN401  (a module)
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(f"{name} is not installed: pip install {name}") from error
