"""For each model of a run: what it can and cannot do as far as the log tells, and the last note about it."""

from collections.abc import Mapping
from typing import Any

from dgm.archive.events import ModelLearned, ModelNoted, NoteKind


class ModelFacts:
    """The fold of ``ModelLearned`` and ``ModelNoted``.

    Attributes:
        abilities: model → all that is known of its abilities, as ``dgm.models.abilities`` writes it.
        words: model → what was learned of it, in order, each once.
        waits: the last wait that was noted; None where there was none.
    """

    def __init__(self) -> None:
        self.abilities: dict[str, Mapping[str, Any]] = {}
        self.words: dict[str, dict[str, None]] = {}
        self.waits: ModelNoted | None = None

    def apply(self, event: object) -> None:
        """Fold one event in; those of other kinds change nothing."""
        match event:
            case ModelLearned(model, abilities, words):
                self.abilities[model] = abilities
                if words:
                    self.words.setdefault(model, {})[words] = None
            case ModelNoted(kind=NoteKind.WAITS):
                self.waits = event
            case ModelNoted(model, _, words):
                self.words.setdefault(model, {})[words] = None
