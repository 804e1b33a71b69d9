"""Files: view by lines, create, replace exactly; every error says what to do."""

import difflib
import os

MOST_LINES = 300
MOST_COLUMNS = 1000
MOST_COMPARED = 5000


def read(path):
    """A file's text; bytes that are no UTF-8 survive."""
    if not os.path.isfile(path):
        folder, name = os.path.split(path)
        near = difflib.get_close_matches(name, os.listdir(folder), 3, 0.5) if os.path.isdir(folder) else []
        raise ValueError("no file %s%s" % (path, "; there is " + ", ".join(near) if near else ""))
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    data = text.encode("utf-8", "surrogateescape")
    with open(path, "wb") as file:
        file.write(data)


def lines_of(text):
    return text[: -1 if text.endswith("\n") else None].split("\n") if text else []


def number(lines, first, last):
    """Lines ``first`` to ``last``, with their numbers."""
    rows = []
    for at, line in enumerate(lines[first - 1 : last], first):
        cut = " [%d more characters]" % (len(line) - MOST_COLUMNS) if len(line) > MOST_COLUMNS else ""
        rows.append("%6d\t%s" % (at, line[:MOST_COLUMNS].rstrip("\r") + cut))
    return "\n".join(rows)


def view(path, first=1, last=0):
    """Numbered lines of a file, or what is in a folder."""
    if os.path.isdir(path):
        names = sorted(name + "/" * os.path.isdir(os.path.join(path, name)) for name in os.listdir(path))
        return "\n".join(names[:MOST_LINES] + ["[%d names in all]" % len(names)] * (len(names) > MOST_LINES))
    lines = lines_of(read(path))
    first = max(1, int(first or 1))
    last = min(int(last or 0) if int(last or 0) > 0 else len(lines), len(lines))
    if first > last:
        return "error: there is no line from %d to %d, the file has %d lines" % (first, last, len(lines))
    end = min(last, first + MOST_LINES - 1)
    rest = "\n[lines %d to %d not shown]" % (end + 1, len(lines)) if end < last else ""
    return number(lines, first, end) + rest


def create(path, content):
    """Write a whole file."""
    what = "replaced" if os.path.exists(path) else "created"
    write(path, content)
    return "%s %s (%d lines)" % (what, path, len(lines_of(content)))


def replace(path, old, new):
    """Replace a text that occurs exactly once."""
    text = read(path)
    if "\r\n" in text and "\r" not in old + new and old.replace("\n", "\r\n") in text:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    if not old or old == new:
        return "error: old must be a text of the file, and new another one; nothing was changed"
    before, *rest = text.split(old)
    if not rest:
        return "error: the text is not in %s; nothing was changed%s" % (path, nearest(text, old))
    if len(rest) > 1:
        ends = [len(old.join([before, *rest[:at]])) for at in range(min(10, len(rest)))]
        places = ", ".join(str(text.count("\n", 0, end) + 1) for end in ends)
        where = "error: the text occurs %d times, at lines %s; give more lines around the one you mean"
        return where % (len(rest), places)
    write(path, before + new + rest[0])
    return "edited %s at line %d" % (path, before.count("\n") + 1)


def nearest(text, old):
    """The lines of a text that are most like another text."""
    lines, wanted = lines_of(text)[:MOST_COMPARED], lines_of(old)
    bare = [line.strip() for line in lines]
    key = max(wanted, key=len)
    near = difflib.get_close_matches(key.strip(), bare, 1, 0.5)
    if not near:
        return ". View the file first"
    first = max(1, bare.index(near[0]) - wanted.index(key))
    shown = number(lines, first, first + len(wanted) + 1)
    return ". Copy the old text exactly. The nearest lines are:\n" + shown
