"""Prompts of operators: one file a prompt, named by its stem, with its source in a comment on the first line.

A run freezes the texts when it begins, so that it resumes and replays with the words that it was begun with.
"""

from collections.abc import Mapping
from importlib.resources import files
from string import Template

from dgm.errors import ArchiveCorrupt

KEY = "prompts"
"""Key of the texts in a run's configuration."""
_UNFROZEN = "-unfrozen"
"""Ends the names of the words that runs used which froze none."""


class Prompts:
    """The prompts of one run."""

    def __init__(self, texts: Mapping[str, str], where: str = "the prompts") -> None:
        """``where`` is the texts' place, for messages."""
        self._texts = texts
        self._where = where

    def fill(self, name: str, values: Mapping[str, object]) -> str:
        """A prompt with ``$name`` replaced by the value of that name; values that it does not name are left out.

        Raises:
            KeyError: there is no such prompt.
            ArchiveCorrupt: it names a value that is not given.
        """
        text = Template(self._texts[name])
        if unknown := sorted({*text.get_identifiers()} - values.keys()):
            raise _prompt_error(self._where, name, f"names ${unknown[0]}, which has no value")
        return text.substitute(values)


def load_shipped() -> Mapping[str, str]:
    """Name → text of the prompts of this version, their first lines left out."""
    folder = files(__name__)
    found = sorted(
        (item for item in folder.iterdir() if item.name.endswith(".md")), key=lambda item: item.name
    )
    texts = {item.name.removesuffix(".md"): item.read_text(encoding="utf-8") for item in found}
    return {name: text.partition("\n")[2] for name, text in texts.items()}


def load_frozen(config: Mapping[str, object], where: str) -> Prompts:
    """Return the prompts of a run with this configuration; what it was not begun with is as shipped.

    Args:
        config: of the run; one that an older dgm made has no prompts, and gets the words of that time.
        where: the configuration's place, for messages.

    Raises:
        ArchiveCorrupt: they are not what dgm writes.
    """
    shipped = load_shipped()
    unfrozen = {
        name.removesuffix(_UNFROZEN): text for name, text in shipped.items() if name.endswith(_UNFROZEN)
    }
    texts = config.get(KEY, unfrozen)
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise ArchiveCorrupt(f"{where}: its {KEY} are not a table of texts; restore it from a copy")
    for name, text in texts.items():
        if not Template(text).is_valid():
            raise _prompt_error(where, name, "has a '$' without a name after it ('$$' stands for one)")
    return Prompts({**shipped, **texts}, where)


def _prompt_error(where: str, name: str, what: str) -> ArchiveCorrupt:
    return ArchiveCorrupt(f"{where}: the prompt {name!r} {what}; restore it from a copy")
