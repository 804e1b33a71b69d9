"""Settings and environment variables by a part of their name or meaning."""

import difflib
import fnmatch
from collections.abc import Sequence

from dgm.config.listing import ListedSection, ListedSetting, Variable, list_sections
from dgm.errors import UserError
from dgm.models.providers import all_variables


def find_matching(pattern: str) -> tuple[Sequence[ListedSection], Sequence[Variable]]:
    """Return the settings and variables whose names match the pattern; else those whose meanings do.

    Raises:
        UserError: nothing matches.
    """
    everything = list_sections()
    for by_meaning in (False, True):
        sections = [
            ListedSection(section.name, section.meaning, kept)
            for section in everything
            if (kept := tuple(one for one in section.settings if _matches_pattern(pattern, one, by_meaning)))
        ]
        variables = [one for one in all_variables() if _matches_pattern(pattern, one, by_meaning)]
        if sections or variables:
            return sections, variables
    names = [setting.name for section in everything for setting in section.settings]
    last = {name.rpartition(".")[2]: name for name in names}
    near = [*difflib.get_close_matches(pattern, names, 3), *difflib.get_close_matches(pattern, last, 3)]
    full = list(dict.fromkeys(last.get(name, name) for name in near))[:3]
    hint = f"nearest: {', '.join(full)}" if full else "dgm settings lists all"
    raise UserError(f"no setting matches '{pattern}' ({hint})")


def _matches_pattern(pattern: str, what: ListedSetting | Variable, by_meaning: bool) -> bool:
    text, wanted = (what.meaning if by_meaning else what.name).casefold(), pattern.casefold()
    if any(sign in wanted for sign in "*?["):
        return not by_meaning and fnmatch.fnmatchcase(text, wanted)
    return wanted in text
