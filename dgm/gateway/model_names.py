"""The names by which an agent may ask for the model that it is lent.

Agents behave by the name of their model: they choose tools, prompts and limits by it. So they are told the provider's
own name, and the names that a product has for a vendor's other models are answered with the lent one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dgm.gateway.allowed import BadRequest

DEFAULT = "default"
"""A name that always stands for the lent model."""
FAMILIES: Mapping[str, str] = {
    "Anthropic": r"claude|haiku|sonnet|opus|fable",
    "OpenAI": r"gpt|chatgpt|codex|o\d",
    "Google": r"gemini|gemma",
    "Qwen": r"qwen|qwq",
    "DeepSeek": r"deepseek",
    "Mistral": r"mistral|mixtral|codestral|devstral|magistral|ministral",
    "Meta": r"llama",
    "xAI": r"grok",
    "Moonshot": r"kimi",
    "Zhipu": r"glm",
}
"""Map of vendor to the words by which its models' names begin, also after a prefix such as ``us.anthropic.``."""


def family_of(name: str) -> str:
    """Return the vendor whose models are named like this; empty if none is known."""
    places = (
        (match.start(), vendor)
        for vendor, words in FAMILIES.items()
        if (match := re.search(rf"(?<![a-z])(?:{words})", name.lower()))
    )
    return min(places, default=(0, ""))[1]


@dataclass(frozen=True, slots=True)
class ModelNames:
    """The names of one lent model."""

    full: str
    """The name that users type: ``openai/gpt-6.2-sol``."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Map of names that agents ask for to model names (``models.aliases``)."""
    any_name: bool = False
    """True if every name is answered, because no model is chosen yet."""

    @property
    def native(self) -> str:
        """The provider's own name of the model: ``gpt-6.2-sol``."""
        provider, slash, name = self.full.partition("/")
        return name if slash and ":" not in provider else self.full

    @property
    def listed(self) -> list[str]:
        """The names that are offered, the one that agents are told first."""
        targets = (DEFAULT, self.full, self.native)
        aliases = [name for name, target in self.aliases.items() if target in targets]
        return list(dict.fromkeys((self.native, DEFAULT, self.full, *aliases)))

    def check(self, name: str) -> bool:
        """Check a name that an agent asks for; return whether it is that of another model, answered with this one.

        Raises:
            BadRequest: the name stands for no model of the same vendor; the message says how to allow it.
        """
        if name in self.listed:
            return False
        if self.any_name or (family_of(name) and family_of(name) == family_of(self.native)):
            return True
        shown = ", ".join(repr(one) for one in self.listed)
        message = (
            f"the model {name[:80]!r} is not offered; use one of {shown}; or answer it with the lent model, in the "
            f'settings: models.aliases = {{"{name[:80]}" = "{DEFAULT}"}}'
        )
        raise BadRequest(message, "model_not_found", 404)
