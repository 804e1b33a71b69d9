"""Reading of INI-like text.

    [section]            ; names may have points: [web.tls]
    key = value          # or key: value
    long = first line
        second line      # indented: joined by one space
    exact = "  #1\\n"     # quoted: nothing is stripped, escapes \\n \\t \\" \\\\

Keys are kept in lower case, sections as written. A section may come back later in the text; a key that
does replaces the earlier one.
"""

import logging

from .errors import SettingsSyntaxError

log = logging.getLogger(__name__)

_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_COMMENTS = "#;"


def read_file(path):
    """Read a UTF-8 file, with or without the mark that some editors put first."""
    with open(path, encoding="utf-8-sig") as stream:
        text = stream.read()
    log.info("read %d characters of settings", len(text))
    return read_text(text, str(path))


def read_text(text, source="<text>"):
    """Return the settings in ``text`` as a dict of sections to dicts of key to text."""
    return _Reader(source).read(text)


class _Reader:
    """One pass over the lines, with the value that is still open."""

    def __init__(self, source):
        self.source = source
        self.line = 0
        self.tree = {}
        self.section = None
        self.key = None
        self.parts = []

    def read(self, text):
        for self.line, line in enumerate(text.splitlines(), 1):
            self.take(line)
        self.finish_value()
        return self.tree

    def fail(self, message):
        raise SettingsSyntaxError(message, self.source, self.line)

    # -- lines

    def take(self, line):
        """Sort one line: blank, comment, continuation, section or key."""
        stripped = line.strip()
        if not stripped:
            self.finish_value()
            return
        if stripped[0] in _COMMENTS:
            return
        if line[0].isspace() and self.key is not None:
            self.parts.append(self.value(stripped))
            log.debug("%s:%d: continues %s", self.source, self.line, self.key)
            return
        self.finish_value()
        if stripped.startswith("["):
            self.open_section(stripped)
        else:
            self.open_key(stripped)

    def open_section(self, text):
        """Begin the section of a ``[name]`` line."""
        name, closing, rest = text[1:].partition("]")
        name = name.strip()
        if not closing:
            self.fail("a section name needs a closing ]")
        if not name:
            self.fail("a section needs a name")
        rest = rest.strip()
        if rest and rest[0] not in _COMMENTS:
            self.fail(f"unexpected text after the section: {rest!r}")
        self.section = self.tree.setdefault(name, {})
        log.debug("%s:%d: section %s", self.source, self.line, name)

    def open_key(self, text):
        """Begin the value of a ``key = value`` or ``key: value`` line."""
        places = [place for place in (text.find("="), text.find(":")) if place >= 0]
        if not places:
            self.fail(f"expected key = value: {text!r}")
        cut = min(places)
        key = text[:cut].strip().lower()
        if not key:
            self.fail("a value needs a key")
        if self.section is None:
            self.fail(f"{key} stands before the first section")
        self.key = key
        self.parts = [self.value(text[cut + 1 :].strip())]
        log.debug("%s:%d: key %s", self.source, self.line, key)

    def finish_value(self):
        """Store the open value, if there is one."""
        if self.key is None:
            return
        self.section[self.key] = " ".join(part for part in self.parts if part)
        self.key = None
        self.parts = []

    # -- values

    def value(self, text):
        """Return a value without quotes, escapes and comment."""
        if text.startswith('"'):
            return self.quoted(text)
        for place, mark in enumerate(text):
            if mark in _COMMENTS and (place == 0 or text[place - 1].isspace()):
                return text[:place].rstrip()
        return text

    def quoted(self, text):
        """Return the content of a quoted value; only a comment may follow it."""
        content = []
        place = 1
        while place < len(text):
            mark = text[place]
            if mark == '"':
                rest = text[place + 1 :].strip()
                if rest and rest[0] not in _COMMENTS:
                    self.fail(f"unexpected text after the value: {rest!r}")
                return "".join(content)
            if mark == "\\":
                place += 1
                escape = text[place : place + 1]
                if escape not in _ESCAPES:
                    self.fail(f"unknown escape: \\{escape}")
                mark = _ESCAPES[escape]
            content.append(mark)
            place += 1
        self.fail("a quoted value needs a closing quote")
