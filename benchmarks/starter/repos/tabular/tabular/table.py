"""A table: named columns and rows that never change."""

from __future__ import annotations

from typing import Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union

Cell = Union[str, int, float, bool, None]
Row = tuple[Cell, ...]


class TableError(ValueError):
    """The table has no such column, or the rows do not fit."""


def _sort_key(cell: Cell) -> tuple:
    """Numbers before texts, empty cells at the end."""
    if cell is None:
        return (2, "")
    if isinstance(cell, str):
        return (1, cell)
    return (0, cell)


class Table:
    """Rows of cells under named columns."""

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]] = ()) -> None:
        self.columns = list(columns)
        if len(set(self.columns)) < len(self.columns):
            raise TableError(f"a column appears twice: {', '.join(self.columns)}")
        self.rows: list[Row] = []
        for row in rows:
            if len(row) != len(self.columns):
                raise TableError(f"{len(row)} cells for {len(self.columns)} columns: {row!r}")
            self.rows.append(tuple(row))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        """The rows as mappings from column to cell."""
        return (dict(zip(self.columns, row)) for row in self.rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return self.columns == other.columns and self.rows == other.rows

    __hash__ = None

    def __repr__(self) -> str:
        return f"Table({self.columns!r}, {self.rows!r})"

    def position(self, column: str) -> int:
        """The number of a column, from 0."""
        if column not in self.columns:
            raise TableError(f"no column {column!r}; there are {', '.join(self.columns)}")
        return self.columns.index(column)

    def cells(self, column: str) -> list[Cell]:
        """The cells of one column."""
        position = self.position(column)
        return [row[position] for row in self.rows]

    def select(self, *columns: str) -> Table:
        """Only some columns, in the order given."""
        positions = [self.position(column) for column in columns]
        return Table(columns, [[row[position] for position in positions] for row in self.rows])

    def where(self, test: Optional[Callable[[dict[str, Cell]], object]] = None, **cells: Cell) -> Table:
        """The rows that pass a test and have the given cells."""
        for column in cells:
            self.position(column)
        kept = []
        for record, row in zip(self, self.rows):
            if test is not None and not test(record):
                continue
            if all(record[column] == cell for column, cell in cells.items()):
                kept.append(row)
        return Table(self.columns, kept)

    def sorted_by(self, *columns: str, descending: bool = False) -> Table:
        """The rows by some columns; rows that are equal in them keep their order."""
        positions = [self.position(column) for column in columns]
        rows = sorted(
            self.rows,
            key=lambda row: [_sort_key(row[position]) for position in positions],
            reverse=descending,
        )
        return Table(self.columns, rows)

    def with_column(self, name: str, compute: Callable[[dict[str, Cell]], Cell]) -> Table:
        """One more column, computed from each row; a column of that name is replaced."""
        values = [compute(record) for record in self]
        if name in self.columns:
            position = self.position(name)
            rows = [row[:position] + (value,) + row[position + 1 :] for row, value in zip(self.rows, values)]
            return Table(self.columns, rows)
        return Table([*self.columns, name], [row + (value,) for row, value in zip(self.rows, values)])

    def renamed(self, names: Mapping[str, str]) -> Table:
        """The same rows under other names."""
        for column in names:
            self.position(column)
        return Table([names.get(column, column) for column in self.columns], self.rows)

    def distinct(self) -> Table:
        """Each row once, where it first appears."""
        return Table(self.columns, dict.fromkeys(self.rows))

    def stacked(self, other: Table) -> Table:
        """The rows of both; the other table may have its columns in another order."""
        return Table(self.columns, self.rows + other.select(*self.columns).rows)

    def head(self, count: int = 5) -> Table:
        """The first rows."""
        return Table(self.columns, self.rows[:count])
