"""The true nature of an agent in a simulated world."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latent:
    """The nature of one agent, which no policy sees."""

    key: bytes
    """16 bytes: hash of the parents' keys and the birth number."""
    skills: tuple[float, ...]
    """In logits; the root's are 0."""
    drift: float
    """What every generation below gains, whatever its edit."""
    reserve: float
    """Gain laid up, which only descendants show."""
    broken: bool
