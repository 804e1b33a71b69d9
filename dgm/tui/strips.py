"""Lines with tones as strips of a terminal, and the look of a tone in each theme."""

from collections.abc import Mapping

from rich.ansi import SGR_STYLE_MAP
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.strip import Strip

from dgm.show.spans import Line, Tone
from dgm.show.terminal import SGR

Tones = Mapping[Tone, Style]

# Colours of a dark and of a light theme: each at least 4.5 : 1 on its background, as a test computes.
_COLOURS: Mapping[Tone, tuple[str, str]] = {
    Tone.PLAIN: ("#e0e0e0", "#1f1f1f"),
    Tone.DIM: ("#9a9a9a", "#545454"),
    Tone.STRONG: ("#ffffff", "#000000"),
    Tone.GOOD: ("#7fd88f", "#145523"),
    Tone.BAD: ("#ff8a80", "#98180f"),
    Tone.WARN: ("#ffc66d", "#6b4100"),
    Tone.MARK: ("#ffd75f", "#6b4100"),
    Tone.KEY: ("#7fc8ff", "#004f7d"),
    Tone.ADDED: ("#7fd88f", "#145523"),
    Tone.REMOVED: ("#ff8a80", "#98180f"),
    Tone.HUNK: ("#7fc8ff", "#004f7d"),
    Tone.CODE_COMMENT: ("#9a9a9a", "#545454"),
    Tone.CODE_KEYWORD: ("#d7a6ff", "#7a1fa2"),
    Tone.CODE_STRING: ("#a5d6a7", "#145523"),
    Tone.CODE_NUMBER: ("#80deea", "#005f6b"),
    Tone.CODE_NAME: ("#90b8ff", "#1a4fb0"),
    Tone.CODE_BUILTIN: ("#80deea", "#005f6b"),
    Tone.CODE_DECORATOR: ("#ffc66d", "#6b4100"),
    Tone.CODE_OPERATOR: ("#c8c8c8", "#3f3f3f"),
}
_BOLD = {Tone.STRONG, Tone.MARK, Tone.CODE_NAME}
CURSOR = "▌"
"""The mark in front of the row that keys act on, so that it is found without colour."""


def tones_of(app: "App[object]") -> Tones:
    """Return the look of tones in the app's theme; in an ANSI theme the terminal's own colours."""
    theme = app.current_theme
    if theme.ansi or app.native_ansi_color:
        return _ANSI
    return _DARK if theme.dark else _LIGHT


def cursor_style(app: "App[object]") -> Style:
    """Return the background of the row that keys act on."""
    theme = app.current_theme
    if theme.ansi or app.native_ansi_color:
        return Style(bold=True)
    return Style(bgcolor="#2d3f54" if theme.dark else "#cfe3f7")


def make_strip(line: Line, tones: Tones) -> Strip:
    """Return the line as a strip; its texts are never read as markup."""
    return Strip([Segment(span.text, tones[span.tone]) for span in line if span.text])


def _make_tones(which: int) -> Tones:
    return {
        tone: Style(color=colours[which], bold=tone in _BOLD or None) for tone, colours in _COLOURS.items()
    }


def _make_ansi_style(codes: str) -> Style:
    """Return the look of codes as ``show.terminal`` writes them."""
    return Style.parse(" ".join(SGR_STYLE_MAP[int(code)] for code in codes.split(";") if code))


_DARK, _LIGHT = _make_tones(0), _make_tones(1)
_ANSI: Tones = {tone: _make_ansi_style(SGR.get(tone, "")) for tone in Tone}
