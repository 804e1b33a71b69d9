"""When the steps of a project can begin, and which of them may not be late.

Steps take whole days. A project begins on day 0, and a step that ends on day 3 lets the steps that
depend on it begin on day 3.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Mapping

from .digraph import Graph, GraphError
from .order import topological_order

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Step:
    """The times of one step, in days since the project's begin."""

    name: str
    days: int
    earliest: int
    latest: int

    @property
    def slack(self) -> int:
        """By how many days the step may begin later without delaying the project."""
        return self.latest - self.earliest

    @property
    def is_critical(self) -> bool:
        """Whether any delay of the step delays the project."""
        return self.slack == 0


@dataclass(frozen=True)
class Plan:
    """All steps in an order in which they can be done."""

    steps: tuple[Step, ...]
    days: int

    def __getitem__(self, name: str) -> Step:
        for step in self.steps:
            if step.name == name:
                return step
        raise GraphError(f"no step {name}")

    @property
    def critical(self) -> list[str]:
        """The steps that may not be late."""
        return [step.name for step in self.steps if step.is_critical]

    def busiest(self) -> tuple[int, int]:
        """The first day with the most steps at work, and their number, when all begin at once."""
        load = [
            sum(step.earliest <= day < step.earliest + step.days for step in self.steps)
            for day in range(self.days)
        ]
        most = max(load, default=0)
        return (load.index(most) if load else 0, most)

    def chart(self) -> str:
        """A bar a step: ``#`` at work, ``.`` slack."""
        width = max((len(step.name) for step in self.steps), default=0)
        return "\n".join(
            f"{step.name:{width}} |{' ' * step.earliest}{'#' * step.days}{'.' * step.slack}"
            for step in self.steps
        )


def _earliest(graph: Graph, days: Mapping[str, int], order: list[str]) -> dict[str, int]:
    """A step begins when the last of the steps before it has ended."""
    begin: dict[str, int] = {}
    for name in order:
        begin[name] = max((begin[before] + days[before] for before in graph.predecessors(name)), default=0)
    return begin


def _latest(graph: Graph, days: Mapping[str, int], order: list[str], end: int) -> dict[str, int]:
    """A step must have ended when the first of the steps behind it has to begin."""
    begin: dict[str, int] = {}
    for name in reversed(order):
        deadline = min((begin[after] for after in graph.successors(name)), default=end)
        begin[name] = deadline - days[name]
    return begin


def plan(graph: Graph, days: Mapping[str, int]) -> Plan:
    """Plan the steps of a graph whose edges lead from a step to those that wait for it.

    Raises:
        GraphError: A step has no duration.
        CycleError: Steps wait for each other.
    """
    for name in graph:
        if name not in days:
            raise GraphError(f"no duration for {name}")
    order = topological_order(graph)
    earliest = _earliest(graph, days, order)
    end = max((earliest[name] + days[name] for name in order), default=0)
    latest = _latest(graph, days, order, end)
    log.info("%d steps take %d days", len(order), end)
    return Plan(tuple(Step(name, days[name], earliest[name], latest[name]) for name in order), end)
