"""Opens a model by its name."""

from collections.abc import Callable, Mapping

from dgm.errors import UserError
from dgm.protocols import Model


def open_model(name: str) -> Model:
    """The model of that name.

    Raises:
        UserError: there is none; the message lists what there is.
    """
    if name not in MODELS:
        raise UserError(f"unknown model {name!r}; known: {', '.join(MODELS)}")
    return MODELS[name]()


def _offline() -> Model:
    from dgm.models.offline import OfflineModel

    return OfflineModel()


def _recorded() -> Model:
    from dgm.models.recorded import RecordedModel

    return RecordedModel()


MODELS: Mapping[str, Callable[[], Model]] = {"offline": _offline, "recorded": _recorded}
