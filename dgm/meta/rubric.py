"""The metric ``rubric``: how far an agent's work is as people want it, judged by a model.

People's notes about the agent and its ancestors are the criteria, after arXiv:2505.02820 (AutoLibra), which first has
a model merge feedback into criteria; here each note is one. The judged conversation is the agent's, which may flatter
the judge: the value is a metric beside the verdict, and never a verdict.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from dgm.domain import Metric, Usage
from dgm.messages import Message, Reply, Request, Role
from dgm.meta.answers import (
    Answer,
    CanAsk,
    Flag,
    MalformedAnswer,
    Text,
    ask_shortened,
    ask_until_readable,
    read_answer,
)
from dgm.meta.evidence import cut_middle
from dgm.meta.prompts import Prompts

RUBRIC = "rubric"
METRIC = Metric(
    higher=True, meaning="share of your notes that the agent's work meets, by a model's judgement"
)
SYSTEM = "You judge whether a coding agent worked as people want it to work."
SKELETON = '{"met": [true, false, ...], "why": "..."}'
CONVERSATION_CHARS = 30_000
"""Maximum characters of a judged conversation."""


class Judgement(Answer):
    """A model's verdict on each criterion, in order."""

    met: tuple[Flag, ...]
    why: Text


@dataclass(slots=True)
class RubricJudge:
    """The model that judges one evaluation's work."""

    bench: CanAsk
    prompts: Prompts
    retries: int
    """Further questions after an unreadable answer."""
    usage: Usage = field(default_factory=Usage)
    """Usage of all questions so far."""

    async def ask(self, request: Request, role: str) -> Reply:
        """Ask once, as ``CanAsk`` has it, and add up the usage."""
        reply = await self.bench.ask(request, role)
        self.usage += reply.usage
        return reply

    async def judge(self, notes: Sequence[str], conversation: bytes) -> float:
        """Return the share of the notes (at least one) that the work in a conversation meets, from 0 to 1.

        Raises:
            AgentFault: no answer could be read.
            Infrastructure: the model failed.
        """
        listed = "\n".join(f"{number}. {note}" for number, note in enumerate(notes, 1))

        def build(chars: int) -> Request:
            # No agent can write the line that ends the quotation.
            quotation = re.sub("§{2,}", "§", cut_middle(conversation, chars).decode("utf-8", "replace"))
            text = self.prompts.fill(RUBRIC, {"notes": listed, "conversation": quotation})
            return Request((Message(Role.SYSTEM, SYSTEM), Message(Role.USER, text)), form=Judgement.form())

        def read(text: str) -> Judgement:
            judgement = read_answer(Judgement, text)
            if len(judgement.met) != len(notes):
                raise MalformedAnswer(f"'met' has {len(judgement.met)} values, not {len(notes)}")
            return judgement

        async def ask(request: Request) -> Judgement:
            return await ask_until_readable(self, request, read, self.retries, "diagnose", SKELETON)

        judgement = await ask_shortened(build, CONVERSATION_CHARS, ask)
        return sum(judgement.met) / len(notes)
