"""Prompts of operators: one file a prompt, named by its stem, with its source in a comment on the first line.

A run freezes the texts when it begins, so that it resumes and replays with the words that it was begun with.
"""

from collections.abc import Mapping
from importlib.resources import files
from string import Template

from dgm.errors import ArchiveCorrupt

KEY = "prompts"
"""Key of the texts in a run's configuration."""


class Prompts:
    """The prompts of one run; ``where`` is their place, for messages."""

    def __init__(self, texts: Mapping[str, str], where: str = "the prompts") -> None:
        self._texts = texts
        self._where = where

    def fill(self, name: str, values: Mapping[str, object]) -> str:
        """Return a prompt with each ``$name`` replaced by its value; further values are ignored.

        Raises:
            KeyError: there is no such prompt.
            ArchiveCorrupt: it names a value that is missing.
        """
        text = Template(self._texts[name])
        if unknown := sorted({*text.get_identifiers()} - values.keys()):
            raise _prompt_error(self._where, name, f"names ${unknown[0]}, which has no value")
        return text.substitute(values)


def load_shipped() -> Mapping[str, str]:
    """Return name → text of the prompts of this version, without their first lines."""
    items = sorted(files(__name__).iterdir(), key=lambda item: item.name)
    return {
        item.name.removesuffix(".md"): item.read_text(encoding="utf-8").partition("\n")[2]
        for item in items
        if item.name.endswith(".md")
    }


def load_frozen(config: Mapping[str, object], where: str) -> Prompts:
    """Return the prompts frozen in a run's configuration, and those as shipped that it lacks.

    Raises:
        ArchiveCorrupt: they are not what dgm writes; ``where`` names the configuration.
    """
    texts = config.get(KEY, {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise ArchiveCorrupt(f"{where}: its {KEY} are not a table of texts; restore it from a copy")
    for name, text in texts.items():
        if not Template(text).is_valid():
            raise _prompt_error(where, name, "has a '$' without a name after it ('$$' stands for one)")
    # A run that froze its prompts before predictions were asked for goes on without.
    return Prompts({**load_shipped(), **({"predict": ""} if texts else {}), **texts}, where)


def _prompt_error(where: str, name: str, what: str) -> ArchiveCorrupt:
    return ArchiveCorrupt(f"{where}: the prompt {name!r} {what}; restore it from a copy")
