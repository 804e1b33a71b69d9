"""What a refusal or a broken connection can mean."""

from collections.abc import Iterable
from dataclasses import dataclass

from dgm.models.abilities import Change
from dgm.models.keys import masked

_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Passing:
    """The next try may do."""

    reason: str
    retry_after_s: float | None = None
    """As the provider asks for it, without a bound."""
    overload: bool = False
    """The provider says that it is asked too much."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """The model's own malformed output, which its server reports as an error: asked again a few times, then told."""

    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The agent's own request is at fault: told; it may reach a verdict."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Single:
    """This one request is refused for what it holds: told, and not the agent's fault."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Ability:
    """The model does not take a part of the request: asked again with the change, which is learned for the run.

    Where ``abilities.learn(change)`` is equal to ``abilities``, asking again would change nothing: then it is told.
    """

    change: Change
    message: str
    output_limit: int | None = None
    """Output tokens that fit this request now."""


@dataclass(frozen=True, slots=True)
class Unable:
    """The model cannot do what was asked, and there is nothing to change: told, and not the agent's fault."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Account:
    """A person has to act: key, arrears, location, organisation, address, model, a server that takes no tools."""

    message: str
    key: bool = False
    """It is the key that is refused."""


Fault = Passing | Sampled | Asked | Single | Ability | Unable | Account


def one_line(text: str, secrets: Iterable[str], hint: str = "") -> str:
    """Return a message as one line of at most 300 characters without keys; a hint of ours stays whole."""
    line = " ".join(masked(text, secrets).split())
    longest = _LONGEST_MESSAGE - len(hint)
    return (line if len(line) <= longest else line[: longest - 1] + "…") + hint
