"""The gate ``novelty``: whether an edit is a near copy of an earlier one.

Either the words alone decide (``similarity``), or a model that is shown the edit and the most alike one. Asking a model
whether a proposal is new enough: arXiv:2509.19349 (ShinkaEvolve), where it follows a similarity of embeddings.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.errors import AgentFault
from dgm.messages import Message, Request, Role
from dgm.meta.answers import CanAsk, ask_shortened, ask_until_readable, read_flag, read_object, read_text
from dgm.meta.forms import FLAG, TEXT, make_form
from dgm.meta.prompts import Prompts
from dgm.meta.similarity import nearest
from dgm.meta.vetting.record import StageRecord

NAME = "novelty"
"""Name of the gate, of its prompt and of its stage."""
SKELETON = '{"copy": true or false, "why": "one sentence"}'
"""The form of the judge's answer."""
FORM = make_form("judgement", {"copy": FLAG, "why": TEXT})
SYSTEM = "You judge whether two edits of a coding agent are near copies of each other."


@dataclass(frozen=True, slots=True)
class AgentEdit:
    """An agent's change of its source, and a name for the agent."""

    name: str
    patch: bytes


@dataclass(frozen=True, slots=True)
class Judge:
    """The model that decides."""

    bench: CanAsk
    prompts: Prompts
    retries: int
    """Further questions after an unreadable answer."""
    prompt_chars: int
    """Maximum characters of both edits together; each is cut in its middle."""

    async def copies(self, edit: bytes, other: bytes) -> tuple[bool, str]:
        """Return whether one edit is a near copy of the other, and the reason.

        Raises:
            AgentFault: stage ``answer``: no answer could be read.
            Infrastructure: the model failed.
        """
        return await ask_shortened(
            lambda chars: self._question(edit, other, chars // 2),
            self.prompt_chars,
            lambda request: ask_until_readable(
                self.bench, request, read_judgement, self.retries, "diagnose", SKELETON
            ),
        )

    def _question(self, edit: bytes, other: bytes, most: int) -> Request:
        said = self.prompts.fill(NAME, {"edit": _cut(edit, most), "other": _cut(other, most)})
        return Request((Message(Role.SYSTEM, SYSTEM), Message(Role.USER, said)), form=FORM)


async def check_novel(
    edit: bytes, others: Sequence[AgentEdit], threshold: float, judge: Judge | None, ran: StageRecord
) -> None:
    """Compare an edit with the existing ones.

    Args:
        edit: the patch from parent to child.
        others: of siblings, and of the agents that the operator was shown.
        threshold: the resemblance (``similarity``) from which on an edit is a copy.
        judge: decides instead of the threshold, unless no answer of the judge can be read.
        ran: receives a note of the result.

    Raises:
        AgentFault: stage ``novelty``: it is a near copy.
        Infrastructure: the model failed.
    """
    at, alike = nearest(edit, [other.patch for other in others])
    if at < 0:
        ran.skip("no other edit has anything in common with it")
        return
    other = others[at]
    ran.note = f"{alike:.2f} like the edit of {other.name}"
    copies, why = alike >= threshold, f"from {threshold:g} on it counts as a copy"
    if judge:
        try:
            copies, why = await judge.copies(edit, other.patch)
        except AgentFault as fault:
            ran.note += f"; by that alone, as the model did not say: {fault}"
    if copies:
        raise AgentFault(NAME, f"a near copy of the edit of {other.name} ({alike:.2f} alike): {why}")


def read_judgement(text: str) -> tuple[bool, str]:
    """Return whether the judge calls an edit a copy, and why, in one line of at most 300 characters.

    Raises:
        MalformedAnswer: it is not in the form of ``SKELETON``.
    """
    answer = read_object(text, ("copy", "why"))
    return read_flag(answer, "copy"), " ".join(read_text(answer, "why").split())[:300]


def _cut(patch: bytes, most: int) -> str:
    text = patch.decode("utf-8", "replace")
    if len(text) <= most:
        return text
    half = most // 2
    return (
        f"{text[:half]}\n[... {len(text) - 2 * half} characters are left out ...]\n{text[len(text) - half :]}"
    )
