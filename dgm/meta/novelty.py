"""The gate ``novelty``: whether an edit is a near copy of an earlier one.

Either the words alone decide, by Broder's resemblance ("On the resemblance and containment of documents", 1997), or a
model that is shown the edit and the most alike one. Asking a model whether a proposal is new enough: arXiv:2509.19349
(ShinkaEvolve), where it follows a similarity of embeddings.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from dgm.errors import AgentFault
from dgm.messages import Message, Request, Role
from dgm.meta.answers import Answer, CanAsk, Flag, Text, ask_shortened, ask_until_readable, read_answer
from dgm.meta.prompts import Prompts

SKELETON = '{"copy": true or false, "why": "one sentence"}'
"""The form of the judge's answer in words."""
SYSTEM = "You judge whether two edits of a coding agent are near copies of each other."
_SHINGLE = 4
"""Tokens in a shingle."""
_MAX_BYTES = 400_000
"""Bytes of one patch that are examined; the rest is ignored."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")

Shingles = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AgentEdit:
    """An agent's change of its source, and a name for the agent."""

    name: str
    patch: bytes


class Judgement(Answer):
    """A model's verdict on two edits."""

    is_copy: Flag = Field(alias="copy")
    why: Annotated[Text, AfterValidator(lambda text: " ".join(text.split())[:300])]


@dataclass(frozen=True, slots=True)
class Judge:
    """The model that decides."""

    bench: CanAsk
    prompts: Prompts
    retries: int
    """Further questions after an unreadable answer."""
    prompt_chars: int
    """Maximum characters of both edits together; each is cut in its middle."""

    async def judge(self, edit: bytes, other: bytes) -> Judgement:
        """Return whether one edit is a near copy of the other.

        Raises:
            AgentFault: stage ``answer``: no answer could be read.
            Infrastructure: the model failed.
        """

        def build(chars: int) -> Request:
            texts = {"edit": _cut(edit, chars // 2), "other": _cut(other, chars // 2)}
            messages = Message(Role.SYSTEM, SYSTEM), Message(Role.USER, self.prompts.fill("novelty", texts))
            return Request(messages, form=Judgement.form())

        async def ask(request: Request) -> Judgement:
            return await ask_until_readable(
                self.bench,
                request,
                lambda text: read_answer(Judgement, text),
                self.retries,
                "diagnose",
                SKELETON,
            )

        return await ask_shortened(build, self.prompt_chars, ask)


async def check_novel(edit: bytes, others: Sequence[AgentEdit], threshold: float, judge: Judge | None) -> str:
    """Compare an edit with the existing ones.

    Args:
        edit: the patch from parent to child.
        others: of siblings, and of the agents that the operator was shown.
        threshold: the resemblance from which on an edit is a copy.
        judge: decides instead of the threshold, unless no answer of the judge can be read.

    Returns:
        A note on the most alike edit; empty if none has anything in common with it.

    Raises:
        AgentFault: stage ``novelty``: it is a near copy.
        Infrastructure: the model failed.
    """
    at, alike = nearest(edit, [other.patch for other in others])
    if at < 0:
        return ""
    other = others[at]
    note = f"{alike:.2f} like the edit of {other.name}"
    is_copy, why = alike >= threshold, f"from {threshold:g} on it counts as a copy"
    if judge:
        try:
            judgement = await judge.judge(edit, other.patch)
            is_copy, why = judgement.is_copy, judgement.why
        except AgentFault as fault:
            note += f"; by that alone, as the model did not say: {fault}"
            why += "; the model did not say"
    if is_copy:
        raise AgentFault("novelty", f"a near copy of the edit of {other.name} ({alike:.2f} alike): {why}")
    return note


def nearest(edit: bytes, edits: Sequence[bytes]) -> tuple[int, float]:
    """Return the index of the most alike patch in ``edits`` (the first of equals), and the resemblance, up to 1.0.

    The resemblance is |S(A) ∩ S(B)| / |S(A) ∪ S(B)|. The result is ``(-1, 0.0)`` if none has anything in common with
    ``edit``. Patches are as ``repository.patch`` gives them.
    """
    mine = shingles(edit)
    best, most_alike = -1, 0.0
    for n, theirs in enumerate(map(shingles, edits)):
        alike = len(mine & theirs) / max(1, len(mine | theirs))
        if alike > most_alike:
            best, most_alike = n, alike
    return best, most_alike


def shingles(patch: bytes) -> Shingles:
    """Return every run of four tokens in a patch's added lines, and in its removed lines, kept apart.

    Each shingle begins with ``+`` or ``-``. Consecutive lines are one text; a text of fewer than four tokens gives one
    short shingle. Paths, places, white space and binary files do not count.
    """
    runs: list[tuple[str, list[bytes]]] = [("", [])]
    for line in _changed_lines(patch[:_MAX_BYTES]):
        sign = line[:1].decode("latin-1")
        if sign != runs[-1][0]:
            runs.append((sign, []))
        runs[-1][1].append(line[1:])
    shingles: set[tuple[str, ...]] = set()
    for sign, lines in runs:
        tokens = _TOKEN.findall(b"\n".join(lines).decode("utf-8", "replace")) if sign in ("+", "-") else []
        last = max(len(tokens) - _SHINGLE, 0)
        shingles.update((sign, *tokens[n : n + _SHINGLE]) for n in range(last + 1) if tokens)
    return frozenset(shingles)


def _changed_lines(patch: bytes) -> Iterator[bytes]:
    """Yield the lines inside hunks by the counts in their headers: a removed ``-- x`` looks like a header itself."""
    old = new = 0
    for line in patch.split(b"\n"):
        if old > 0 or new > 0:
            old -= line[:1] in b" -"
            new -= line[:1] in b" +"
            yield line or b" "
        elif header := _HUNK.match(line):
            old, new = (int(count) if count is not None else 1 for count in header.groups())
            yield b" "


def _cut(patch: bytes, max_chars: int) -> str:
    text = patch.decode("utf-8", "replace")
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    missing = len(text) - 2 * half
    return f"{text[:half]}\n[... {missing} characters are left out ...]\n{text[len(text) - half :]}"
