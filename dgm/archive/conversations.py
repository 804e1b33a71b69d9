"""Put the recorded model calls of a job together as its conversations: each message once, in order.

A call that extends an earlier one goes on with its segment. A call with the same system prompt and tools that does not
begins a new segment (the agent made its context shorter); any other begins a new thread (a sub-agent, a title).
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from dgm.messages import Message, Reply, Request, Role, Tool

MAX_CHARS = 50_000_000
"""Characters of different messages that are kept of a job; of further ones only the size is kept."""
_WITH_DIGITS = re.compile(r"[\w.:-]*\d[\w.:-]*")
"""Dates, counters, versions and checksums, in which equal system prompts may differ."""
_QUOTED_CHARS = 24
"""Minimum characters of a line by which a new context is known to quote a reply."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The part of a request that is the same in every call: system prompt and tool definitions."""

    system: str = ""
    tools: Sequence[Tool] = ()

    def text(self) -> str:
        """Return all of it as readable text."""
        tools = [
            f"## tool `{tool.name}`\n\n{tool.description}\n\n{json.dumps(tool.parameters, ensure_ascii=False)}"
            for tool in self.tools
        ]
        return "\n\n".join(filter(None, (self.system, *tools)))


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation."""

    message: Message
    call: int
    """Number of the model call that it is the answer of, or in whose request it first appears."""
    reply: Reply | None = None
    """The reply, if it is the answer of a call."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Calls of which each extends the one before."""

    turns: Sequence[Turn]
    """Its messages; those that the thread has already shown are left out."""
    left_out: int = 0
    """Number of the thread's earlier messages that its first request does not hold."""


@dataclass(frozen=True, slots=True)
class Thread:
    """One conversation of a job."""

    segments: Sequence[Segment]
    prompts: Sequence[Prompts] = ()
    """Different system prompts and tools, in the order of their use."""

    @property
    def turns(self) -> Iterator[Turn]:
        """All turns, in order."""
        return (turn for segment in self.segments for turn in segment.turns)

    @property
    def calls(self) -> int:
        """Number of its model calls."""
        return sum(turn.reply is not None for turn in self.turns)


def thread_of(messages: Sequence[Message]) -> Thread:
    """Return messages that are not of recorded calls, such as an agent's own log, as one thread."""
    system = "\n\n".join(message.text for message in messages if message.role is Role.SYSTEM)
    turns = [Turn(message, 0) for message in messages if message.role is not Role.SYSTEM]
    return Thread((Segment(tuple(turns)),), (Prompts(system),) if system else ())


def main_conversation(threads: Sequence[Thread]) -> Sequence[Message]:
    """Return the messages of the first thread."""
    return [turn.message for turn in threads[0].turns] if threads else []


def collect_threads(
    calls: Iterable[tuple[int, Request, Reply]], max_chars: int = MAX_CHARS
) -> Sequence[Thread]:
    """Return the threads of a job's calls, each with its number, in the order of ``ConversationBuilder.threads``."""
    conversations = ConversationBuilder(max_chars)
    for number, request, reply in calls:
        conversations.add(request, reply, number)
    return conversations.threads()


@dataclass(slots=True)
class _Chain:
    """A segment while it grows; messages by their digests."""

    initial: Sequence[bytes]
    """Messages of its first request."""
    first: int
    prompts: dict[bytes, Prompts]
    base: int = 0
    """Number of initial messages that are another chain's."""
    later: list[tuple[bytes, int, Reply | None]] = field(default_factory=list)
    last: int = 0
    tip: bytes = b""
    """State after its last request, without the reply."""
    length: int = 0
    """Number of messages of its last request."""


class ConversationBuilder:
    """Collects calls one by one; memory is linear in the different messages, and bounded by ``max_chars``."""

    def __init__(self, max_chars: int = MAX_CHARS) -> None:
        self._max_chars = max_chars
        self._messages: dict[bytes, Message] = {}
        self._chains: list[_Chain] = []
        self._answered: dict[bytes, _Chain] = {}
        """State after a reply → the chain that it is of."""
        self._asked: dict[bytes, _Chain] = {}
        """Prompts and state after a request → the chain that it is of."""
        self._chars = 0
        self._order = 0
        self._numbers: dict[int, int] = {}

    def add(self, request: Request, reply: Reply, number: int | None = None) -> None:
        """Add the next call; ``number`` is its number for readers, by default its place."""
        self._order += 1
        order = self._order
        self._numbers[order] = order if number is None else number
        leading = list(takewhile(lambda message: message.role is Role.SYSTEM, request.messages))
        rest = [each for each in request.messages[len(leading) :] if each.text or each.calls or each.call_id]
        prompts = Prompts("\n\n".join(message.text for message in leading), tuple(request.tools))
        key = _hash(_WITH_DIGITS.sub("#", prompts.text()).encode("utf-8", "replace"))
        digests = [self._intern(message) for message in rest]
        states = [b""]
        for digest in digests:
            states.append(_hash(states[-1] + digest))

        chain, length = self._find(key, states)
        if chain is None or not _is_at_end(chain, states):
            # The context was rewritten, or another conversation begins, or an earlier point is taken up again.
            base = length if chain else 0
            chain = _Chain(digests, order, {}, base)
            self._chains.append(chain)
        else:
            new = range(chain.length, len(rest))
            repeated = self._repeated_reply(chain, [rest[place] for place in new])
            chain.later += [(digests[place], order, None) for place in new[repeated:]]
        chain.prompts.setdefault(key, prompts)
        turn = Message(Role.ASSISTANT, reply.text, reply.calls)
        answer = self._intern(turn)
        chain.later.append((answer, order, replace(reply, native=None)))
        chain.last, chain.tip, chain.length = order, states[-1], len(rest)
        self._asked[key + states[-1]] = chain
        self._answered[_hash(states[-1] + answer)] = chain

    def threads(self) -> Sequence[Thread]:
        """Return the threads of the calls so far: the one with the most calls, then by their first calls."""
        groups: list[list[_Chain]] = []
        for chain in self._chains:
            group = self._group_of(chain, groups)
            if group is None:
                groups.append([chain])
            else:
                group.append(chain)
        threads = [self._thread(group) for group in groups]
        main = max(threads, key=lambda thread: thread.calls, default=None)
        return [thread for thread in threads if thread is main] + [t for t in threads if t is not main]

    def _find(self, key: bytes, states: Sequence[bytes]) -> tuple[_Chain | None, int]:
        """Return the chain that a request extends, and by how many messages; None if it extends none.

        The newest chain at whose end it goes on comes first, then the one that it extends the farthest.
        """
        matches = [
            (chain, length)
            for length in range(len(states) - 1, 0, -1)
            for chain in (self._answered.get(states[length]), self._asked.get(key + states[length]))
            if chain is not None
        ]
        at_end = [match for match in matches if _is_at_end(match[0], states)]
        return max(at_end, key=lambda match: match[0].last, default=matches[0] if matches else (None, 0))

    def _repeated_reply(self, chain: _Chain, messages: Sequence[Message]) -> int:
        """Return how many of the messages after a request repeat its reply, perhaps in other words or parts."""
        told = next(reply for _, _, reply in reversed(chain.later) if reply)
        repeated = list(takewhile(lambda message: message.role is Role.ASSISTANT, messages))
        if [call.name for message in repeated for call in message.calls] != [
            call.name for call in told.calls
        ]:
            return 0
        if told.calls or any(message.text.strip() in told.text for message in repeated):
            return len(repeated)
        return 0

    def _intern(self, message: Message) -> bytes:
        digest = _hash(_canonical(message))
        if digest not in self._messages:
            size = len(message.text) + sum(len(call.arguments) for call in message.calls)
            self._chars += size
            if self._chars > self._max_chars:
                message = Message(message.role, f"[{size} characters are not kept]")
            self._messages[digest] = message
        return digest

    def _group_of(self, chain: _Chain, groups: Sequence[list[_Chain]]) -> list[_Chain] | None:
        """Return the thread that a chain goes on with: one with the same prompts whose calls all came before."""
        earlier = [
            group
            for group in groups
            if max(each.last for each in group) < chain.first
            and any(each.prompts.keys() & chain.prompts.keys() for each in group)
        ]
        earlier.sort(key=lambda group: group[-1].last, reverse=True)
        wanted = set(chain.initial)
        shared = [len(wanted & self._digests(group)) for group in earlier]
        if any(shared):
            return earlier[shared.index(max(shared))]
        return next((group for group in earlier if self._was_cut(group[-1], chain)), None)

    def _was_cut(self, before: _Chain, after: _Chain) -> bool:
        """Return whether a chain was not at its end when another one with the same prompts began."""
        told = next(reply for _, _, reply in reversed(before.later) if reply)
        if told.calls or told.error or not any(prompts.tools for prompts in before.prompts.values()):
            return True
        quoted = "\n".join(self._messages[digest].text for digest in after.initial)
        return any(
            line.strip() in quoted for line in told.text.splitlines() if len(line.strip()) >= _QUOTED_CHARS
        )

    @staticmethod
    def _digests(group: Sequence[_Chain]) -> set[bytes]:
        return {
            digest
            for chain in group
            for digest in (*chain.initial, *(digest for digest, _, _ in chain.later))
        }

    def _thread(self, group: Sequence[_Chain]) -> Thread:
        shown: Counter[bytes] = Counter()
        segments: list[Segment] = []
        for chain in group:
            turns, known = [], Counter(shown)
            for place, digest in enumerate(chain.initial):
                if known[digest]:
                    known[digest] -= 1
                elif place >= chain.base:
                    turns.append(self._turn(digest, chain.first, None))
                    shown[digest] += 1
            turns += [self._turn(*item) for item in chain.later]
            shown.update(digest for digest, _, _ in chain.later)
            segments.append(Segment(tuple(turns), known.total() if segments else 0))
        prompts = {key: each for chain in group for key, each in chain.prompts.items()}
        return Thread(tuple(segments), tuple(prompts.values()))

    def _turn(self, digest: bytes, order: int, reply: Reply | None) -> Turn:
        return Turn(self._messages[digest], self._numbers[order], reply)


def _is_at_end(chain: _Chain, states: Sequence[bytes]) -> bool:
    """Return whether a request, given by its states, goes on where a chain is now."""
    return chain.length < len(states) and chain.tip == states[chain.length]


def _canonical(message: Message) -> bytes:
    """Return what makes a message the same one when it is sent again: not its ids, and not the layout of its JSON."""
    calls = [(call.name, _compact(call.arguments)) for call in message.calls]
    return json.dumps([message.role.value, message.text.strip(), calls]).encode()


def _compact(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
