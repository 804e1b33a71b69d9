"""The limiter: rules applied to many clients, with own rules for some and bans for the stubborn."""

import logging
from dataclasses import dataclass, field
from typing import Optional

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decision:
    """Whether a request may go on.

    Attributes:
        allowed: Whether it may.
        remaining: How many more requests of cost 1 would be allowed right now; ``None`` without a limit.
        retry_after_s: Seconds after which it is worth trying again; ``None`` if it never is.
        reason: The rule that forbids it, ``"banned"``, or the empty text.
    """

    allowed: bool
    remaining: Optional[int]
    retry_after_s: Optional[float] = 0.0
    reason: str = ""


@dataclass
class _Client:
    limits: list
    seen_at: float
    strikes: int = 0
    banned_until: float = 0.0
    counts: dict = field(default_factory=lambda: {"allowed": 0, "denied": 0})

    def banned(self, now):
        return now < self.banned_until


class Limiter:
    """Decide for each client whether a request may go on.

    Args:
        rules: The rules for everybody; a request must satisfy all of them.
        clock: Where the time comes from.
        strikes: After so many denied requests in a row a client is banned; 0 never bans.
        ban_s: How long a ban lasts.
    """

    def __init__(self, rules, clock, strikes=0, ban_s=60.0):
        self._rules = tuple(rules)
        self._clock = clock
        self._strikes = strikes
        self._ban_s = ban_s
        self._own_rules = {}
        self._exempt = set()
        self._clients = {}

    def set_rules(self, client, rules):
        """Give a client rules of its own; none at all means no limit. It starts afresh."""
        self._own_rules[client] = tuple(rules)
        self._clients.pop(client, None)

    def clear_rules(self, client):
        """Let the rules for everybody hold for a client again."""
        if self._own_rules.pop(client, None) is not None:
            self._clients.pop(client, None)

    def exempt(self, client):
        """Never limit a client."""
        self._exempt.add(client)

    def rules_for(self, client):
        """Return the rules that hold for a client."""
        return self._own_rules.get(client, self._rules)

    def _client(self, name):
        state = self._clients.get(name)
        if state is None:
            limits = [(rule, rule.build(self._clock)) for rule in self.rules_for(name)]
            state = self._clients[name] = _Client(limits, self._clock.now())
            log.debug("new client %s with %d rules", name, len(limits))
        return state

    def check(self, client, cost=1):
        """Decide on a request, and count it if it is allowed.

        A denied request uses up nothing, whichever rule denies it.
        """
        if cost < 0:
            raise ValueError("the cost must not be negative")
        if client in self._exempt:
            return Decision(True, None)
        state = self._client(client)
        now = self._clock.now()
        state.seen_at = now
        decision = self._decide(state, cost, now)
        if decision.allowed:
            state.strikes = 0
            state.counts["allowed"] += 1
        else:
            state.counts["denied"] += 1
            decision = self._punish(client, state, decision, now)
        log.info("%s cost %s: %s %s", client, cost, "allowed" if decision.allowed else "denied", decision.reason)
        return decision

    def _decide(self, state, cost, now):
        if state.banned(now):
            return Decision(False, 0, state.banned_until - now, "banned")
        longest, reason = 0.0, ""
        for rule, limit in state.limits:
            wait = limit.wait(cost)
            if wait is None:
                return Decision(False, self._remaining(state), None, str(rule))
            if wait > longest:
                longest, reason = wait, str(rule)
        if reason:
            return Decision(False, self._remaining(state), longest, reason)
        for _, limit in state.limits:
            limit.take(cost)
        return Decision(True, self._remaining(state))

    def _punish(self, name, state, decision, now):
        """Count a strike; the one that is too many turns the decision into a ban."""
        if not self._strikes or state.banned(now):
            return decision
        state.strikes += 1
        if state.strikes < self._strikes:
            return decision
        state.strikes = 0
        state.banned_until = now + self._ban_s
        log.info("%s is banned until %.1f", name, state.banned_until)
        return Decision(False, 0, self._ban_s, "banned")

    @staticmethod
    def _remaining(state):
        if not state.limits:
            return None
        return min(limit.remaining() for _, limit in state.limits)

    def peek(self, client, cost=1):
        """Return the seconds until a request would be allowed, without counting anything."""
        if client in self._exempt:
            return 0.0
        state = self._client(client)
        now = self._clock.now()
        waits = [limit.wait(cost) for _, limit in state.limits]
        if any(wait is None for wait in waits):
            return None
        return max([0.0, state.banned_until - now, *waits])

    def pardon(self, client):
        """End a client's ban and forget its strikes."""
        state = self._clients.get(client)
        if state is not None:
            state.banned_until = 0.0
            state.strikes = 0

    def banned(self):
        """Return the clients that are banned now, sorted."""
        now = self._clock.now()
        return sorted(name for name, state in self._clients.items() if state.banned(now))

    def forget_idle(self, idle_s):
        """Forget the clients not seen for ``idle_s`` seconds or longer, except for banned ones.

        Returns:
            How many were forgotten.
        """
        now = self._clock.now()
        idle = []
        for name, state in self._clients.items():
            if now - state.seen_at >= idle_s and not state.banned(now):
                idle.append(name)
        for name in idle:
            del self._clients[name]
        log.debug("forgot %d clients, %d left", len(idle), len(self._clients))
        return len(idle)

    def counts(self, client):
        """Return how many requests of a client were allowed and denied."""
        state = self._clients.get(client)
        return dict(state.counts) if state is not None else {"allowed": 0, "denied": 0}

    def busiest(self, count):
        """Return the clients with the most requests, the busiest first; ties by name."""
        totals = {name: sum(state.counts.values()) for name, state in self._clients.items()}
        return sorted(totals, key=lambda name: (-totals[name], name))[:count]
