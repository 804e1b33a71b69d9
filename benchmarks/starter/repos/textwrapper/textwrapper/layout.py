"""Blocks of lines: headings, lists, definitions, tables and columns.

Each function returns a list of lines without blanks at their ends.
"""

from .paragraphs import wrap
from .width import all_amounts, cut, display_width, pad


def heading(text, width, mark="="):
    """Return a heading with a line of ``mark`` as long as it is below."""
    lines = wrap(text, width)
    return [*lines, mark * max(map(display_width, lines), default=0)]


# -- lists


def bullets(items, width, mark="*"):
    """Return a list; the lines after an item's first are indented.

    An item may be a pair of a text and a list of items, which becomes a list one level deeper.
    """
    lines = []
    for item in items:
        text, inner = item if isinstance(item, tuple) else (item, [])
        lines += wrap(text, width, f"{mark} ", " " * (display_width(mark) + 1))
        if inner:
            step = display_width(mark) + 1
            lines += [" " * step + line for line in bullets(inner, width - step, mark)]
    return lines


def numbered(items, width, start=1):
    """Return a list with numbers, which are aligned at their right ends."""
    digits = len(str(start + len(items) - 1))
    lines = []
    for number, text in enumerate(items, start):
        mark = f"{number:>{digits}}. "
        lines += wrap(text, width, mark, " " * len(mark))
    return lines


def definitions(text, width, gap=2, widest=20):
    """Return a list of terms and their meanings from lines such as ``term: meaning``.

    The term ends at the first colon. Meanings begin in the same place, ``gap`` cells behind the widest term of
    up to ``widest`` cells; a wider term has a line of its own. A line without a colon goes on with the meaning
    before it.
    """
    entries = []
    for line in text.splitlines():
        if not line.strip():
            continue
        term, colon, meaning = line.partition(":")
        if colon:
            entries.append([term.strip(), meaning.strip()])
        elif entries:
            entries[-1][1] += " " + line.strip()
        else:
            raise ValueError(f"no term: {line!r}")
    margin = max((display_width(term) for term, _ in entries if display_width(term) <= widest), default=0) + gap
    lines = []
    for term, meaning in entries:
        first = pad(term, margin)
        if display_width(term) > widest:
            lines.append(term)
            first = " " * margin
        lines += wrap(meaning, width, first, " " * margin) or [first.rstrip()]
    return lines


# -- tables


def _alignments(rows, wanted):
    """Return the alignment of each column: as wanted (``l``, ``r``, ``c``), or right for amounts."""
    names = {"l": "left", "r": "right", "c": "center"}
    if wanted:
        return [names[letter] for letter in wanted]
    return ["right" if all_amounts(column) else "left" for column in zip(*rows)]


def _shrunk(widths, room):
    """Return widths that add up to ``room`` or less, taken from the widest columns, one cell at a time."""
    widths = list(widths)
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda column: widths[column])
        if widths[widest] <= 1:
            raise ValueError(f"no room for {len(widths)} columns")
        widths[widest] -= 1
    return widths


def table(rows, width=None, header=None, align="", gap=2):
    """Return a table.

    ``align`` has a letter for each column (``l``, ``r`` or ``c``); without it columns of amounts are aligned
    to the right and others to the left, whatever the header. Cells are cut where the table would be wider
    than ``width``. Short rows are filled up with empty cells.
    """
    if not rows:
        return []
    count = max(len(row) for row in ([header] if header else []) + list(rows))
    body = [[str(cell) for cell in row] + [""] * (count - len(row)) for row in rows]
    aligned = _alignments(body, align)
    shown = body
    if header:
        shown = [list(header) + [""] * (count - len(header)), *body]
    widths = [max(map(display_width, column)) for column in zip(*shown)]
    if width is not None:
        widths = _shrunk(widths, width - gap * (count - 1))
    lines = []
    for row in shown:
        cells = [pad(cut(cell, size), size, side) for cell, size, side in zip(row, widths, aligned)]
        lines.append((" " * gap).join(cells).rstrip())
    if header:
        lines.insert(1, (" " * gap).join("-" * size for size in widths))
    return lines


# -- columns


def columns(items, width, gap=2):
    """Return short texts in as many equal columns as fit, read downwards.

    No column but the last ones is shorter than the first, and no line is left empty.
    """
    if not items:
        return []
    widest = min(max(map(display_width, items)), width)
    count = min(max((width + gap) // (widest + gap), 1), len(items))
    rows = (len(items) - 1) // count + 1
    lines = []
    for row in range(rows):
        cells = [pad(cut(item, widest), widest) for item in items[row::rows]]
        lines.append((" " * gap).join(cells).rstrip())
    return lines


def side_by_side(left, right, width, gap=4):
    """Return two texts wrapped next to each other, each in half of the room; the left gets the odd cell."""
    room = width - gap
    left_width = room - room // 2
    left_lines, right_lines = wrap(left, left_width), wrap(right, room // 2)
    lines = []
    for index in range(max(len(left_lines), len(right_lines))):
        first = left_lines[index] if index < len(left_lines) else ""
        second = right_lines[index] if index < len(right_lines) else ""
        lines.append((pad(first, left_width + gap) + second).rstrip())
    return lines


# -- boxes


def boxed(lines, width=None, title="", align="left"):
    """Return lines in a frame, with a title in its upper edge.

    Without a width the frame is as wide as its widest line or its title; with one, lines that are too wide
    are cut.
    """
    if width is None:
        widest = max(map(display_width, lines), default=0)
        width = max(widest + 4, display_width(title) + 6 if title else 0)
    room = width - 4
    if room < 1:
        raise ValueError(f"no room for text in a box of {width} cells")
    edge = "-" * (width - 2)
    top = f"+{edge}+"
    if title:
        label = f" {cut(title, room - 2)} "
        top = f"+-{label}{'-' * (width - 3 - display_width(label))}+"
    body = [f"| {pad(cut(line, room), room, align)} |" for line in lines]
    return [top, *body, f"+{edge}+"]


def rule(width, text="", mark="-"):
    """Return a line of ``mark`` with a text in its middle."""
    if not text:
        return mark * width
    shown = f" {cut(text, width - 4)} "
    room = max(width - display_width(shown), 0)
    return mark * (room // 2) + shown + mark * (room - room // 2)
