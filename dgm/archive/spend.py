"""What model calls took: in total, by role and model, and per action; a million actions fit in a few megabytes."""

from array import array

from dgm.domain import ActionId, Usage


class Spend:
    """The fold of every model call: the one place where money is added up, so that nothing counts twice."""

    def __init__(self) -> None:
        self.total = Usage()
        self.by: dict[tuple[str, str], Usage] = {}
        """Role and model → the sum over their calls."""
        self._calls = array("q")
        self._input = array("q")
        self._output = array("q")
        self._usd = array("d")

    def add(self, action: ActionId, usage: Usage, who: tuple[str, str]) -> None:
        """Adds one call to its action, to its role and model (``who``), and to the total."""
        self.by[who] = self.by.get(who, Usage()) + usage
        missing = action + 1 - len(self._calls)
        if missing > 0:
            for column in (self._calls, self._input, self._output):
                column.extend([0] * missing)
            self._usd.extend([0.0] * missing)
        self._calls[action] += usage.calls
        self._input[action] += usage.input_tokens
        self._output[action] += usage.output_tokens
        self._usd[action] += usage.usd
        self.total = self.total + usage

    def of(self, action: ActionId) -> Usage:
        """The sum over one action's calls; zero for an action that made none. Only tokens in all, no finer counts."""
        if not 0 <= action < len(self._calls):
            return Usage()
        return Usage(self._calls[action], self._input[action], self._output[action], self._usd[action])
