"""Files: view by lines, create, replace exactly; every error says what to do."""

import difflib
import os

MOST_LINES = 300
MOST_COMPARED = 5000


def read(path):
    """A file's text; bytes that are no UTF-8 survive."""
    if not os.path.isfile(path):
        folder, name = os.path.split(path)
        there = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        near = difflib.get_close_matches(name, there, 3, 0.5)
        raise ValueError("no file %s%s" % (path, "; there is " + ", ".join(near) if near else ""))
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)


def number(lines, first, last):
    """Lines ``first`` to ``last``, with their numbers."""
    rows = enumerate(lines[first - 1 : last], first)
    return "\n".join("%6d\t%s" % (at, line.encode("utf-8", "replace").decode()) for at, line in rows)


def view(path, first=1, last=0):
    """Numbered lines of a file, or what is in a folder."""
    if os.path.isdir(path):
        return "\n".join(
            sorted(name + "/" * os.path.isdir(os.path.join(path, name)) for name in os.listdir(path))
        )
    lines = read(path).splitlines()
    first = max(1, int(first or 1))
    end = min(int(last or 0) or len(lines), len(lines), first + MOST_LINES - 1)
    if first > len(lines):
        return "error: the file has %d lines" % len(lines)
    rest = (
        "" if end in (int(last or 0), len(lines)) else "\n[lines %d to %d not shown]" % (end + 1, len(lines))
    )
    return number(lines, first, end) + rest


def create(path, content):
    """Write a whole file."""
    what = "replaced" if os.path.exists(path) else "created"
    write(path, content)
    return "%s %s (%d lines)" % (what, path, len(content.splitlines()))


def replace(path, old, new):
    """Replace a text that occurs exactly once."""
    text = read(path)
    if "\r\n" in text and old not in text:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    if not old or old == new:
        return "error: old must be a text of the file, and new another one; nothing was changed"
    count = text.count(old)
    if count == 1:
        write(path, text.replace(old, new))
        return "edited %s at line %d" % (path, text[: text.index(old)].count("\n") + 1)
    if count:
        pieces = text.split(old)[:-1][:10]
        places = [str((old.join(pieces[: at + 1])).count("\n") + 1) for at in range(len(pieces))]
        where = "error: the text occurs %d times, at lines %s; give more lines around the one you mean"
        return where % (count, ", ".join(places))
    return "error: the text is not in %s; nothing was changed%s" % (path, nearest(text, old))


def nearest(text, old):
    """The lines of a text that are most like another text."""
    lines, wanted = (
        text.splitlines()[:MOST_COMPARED],
        [line.strip() for line in old.splitlines() if line.strip()],
    )
    if not lines or not wanted:
        return ""
    key = max(wanted, key=len)
    match = difflib.SequenceMatcher(None, "", key, autojunk=False)

    def likeness(at):
        match.set_seq1(lines[at].strip())
        return match.ratio() if match.quick_ratio() > 0.5 else 0.0

    best = max(range(len(lines)), key=likeness)
    if likeness(best) < 0.5:
        return ". View the file first"
    first = max(1, best + 1 - wanted.index(key) - 1)
    return ". Copy the old text exactly. The nearest lines are:\n" + number(
        lines, first, first + len(wanted) + 1
    )
