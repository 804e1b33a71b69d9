"""Rules: a limit in words, such as ``100/min burst 20`` or ``5 in 10s sliding``."""

import re
from dataclasses import dataclass

from .buckets import LeakyBucket, TokenBucket
from .windows import FixedWindow, SlidingWindow

SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_RATE = re.compile(r"(\d+)\s*/\s*(s|min|h|d)(?:\s+(burst|queue)\s+(\d+))?$")
_WINDOW = re.compile(r"(\d+)\s+in\s+(\d+)\s*(s|min|h|d)(?:\s+(sliding))?$")


@dataclass(frozen=True)
class Rule:
    """What kind of limit there is, and its numbers; ``seconds`` is the span that ``amount`` is for."""

    kind: str
    amount: int
    seconds: int
    burst: int = 0

    def build(self, clock):
        """Return a fresh limit that follows this rule."""
        if self.kind == "fixed":
            return FixedWindow(self.amount, self.seconds, clock)
        if self.kind == "sliding":
            return SlidingWindow(self.amount, self.seconds, clock)
        rate = self.amount / self.seconds
        if self.kind == "leaky":
            return LeakyBucket(rate, self.burst, clock)
        return TokenBucket(rate, self.burst or self.amount, clock)

    def __str__(self):
        if self.kind in ("fixed", "sliding"):
            return f"{self.amount} in {self.seconds}s" + (" sliding" if self.kind == "sliding" else "")
        name = "queue" if self.kind == "leaky" else "burst"
        return f"{self.amount}/{self.seconds}s" + (f" {name} {self.burst}" if self.burst else "")


def parse_rule(text):
    """Read a rule; see the top of the module for examples."""
    text = text.strip().lower()
    match = _RATE.match(text)
    if match is not None:
        amount, unit, shape, size = match.groups()
        kind = "leaky" if shape == "queue" else "token"
        rule = Rule(kind, int(amount), SECONDS[unit], int(size or 0))
    else:
        match = _WINDOW.match(text)
        if match is None:
            raise ValueError(f"cannot read the rule {text!r}")
        amount, count, unit, sliding = match.groups()
        rule = Rule("sliding" if sliding else "fixed", int(amount), int(count) * SECONDS[unit])
    if rule.amount == 0 or rule.seconds == 0:
        raise ValueError(f"the rule {text!r} allows nothing")
    return rule
