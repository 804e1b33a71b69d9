"""Lines on pages of a fixed height."""

from .width import pad


def paginate(blocks, height, width=60, title=""):
    """Put blocks (lists of lines) on pages; return a list of pages, each a list of ``height`` lines.

    A blank line lies between blocks, but not at the top of a page. A block that fits on a page is not torn
    apart. The first line of each page is the title and the last one the page's number, both in the middle.
    """
    room = height - 2
    if room < 1:
        raise ValueError(f"no room for text on a page of {height} lines")
    bodies = [[]]
    for block in blocks:
        gap = 1 if bodies[-1] else 0
        if bodies[-1] and len(bodies[-1]) + gap + len(block) > room:
            bodies.append([])
            gap = 0
        bodies[-1].extend([""] * gap)
        for line in block:
            if len(bodies[-1]) == room:
                bodies.append([])
            bodies[-1].append(line)
    pages = []
    for number, body in enumerate(bodies, 1):
        filled = body + [""] * (room - len(body))
        footer = pad(f"- {number} of {len(bodies)} -", width, "center").rstrip()
        pages.append([pad(title, width, "center").rstrip(), *filled, footer])
    return pages
