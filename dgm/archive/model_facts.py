"""The known abilities of each model of a run, from its log, and the last note about each model."""

from collections.abc import Mapping
from typing import Any

from dgm.archive.events import ModelLearned, ModelNoted, NoteKind


class ModelFacts:
    """A fold of ``ModelLearned`` and ``ModelNoted``.

    Attributes:
        abilities: model → all known abilities, in the form that ``dgm.models.abilities`` writes.
        words: model → learned facts as text, in order, each once.
        waits: the last noted wait; None if there was none.
    """

    def __init__(self) -> None:
        self.abilities: dict[str, Mapping[str, Any]] = {}
        self.words: dict[str, dict[str, None]] = {}
        self.waits: ModelNoted | None = None

    def apply(self, event: object) -> None:
        """Fold in one event; events of other kinds change nothing."""
        match event:
            case ModelLearned(model, abilities, words):
                self.abilities[model] = abilities
                if words:
                    self.words.setdefault(model, {})[words] = None
            case ModelNoted(kind=NoteKind.WAITS):
                self.waits = event
            case ModelNoted(model, _, words):
                self.words.setdefault(model, {})[words] = None
