"""Merge two sets of changes of the same lines."""

from dataclasses import dataclass, field

from .script import compare


@dataclass
class Merged:
    """The merged lines, and where the two sides could not be brought together."""

    lines: list = field(default_factory=list)
    conflicts: list = field(default_factory=list)


def merge(base, ours, theirs, names=("ours", "theirs")):
    """Merge ``ours`` and ``theirs``, both made from ``base``.

    Where both changed the same lines differently the result has both, between markers, and ``conflicts`` has the
    first and the last line number (from 0) of that part.
    """
    merged = Merged()
    position, shift_ours, shift_theirs = 0, 0, 0
    for start, stop, mine, yours in _regions(compare(base, ours), compare(base, theirs)):
        merged.lines += base[position:start]
        size_ours = stop - start + sum(_growth(edit) for edit in mine)
        size_theirs = stop - start + sum(_growth(edit) for edit in yours)
        left = ours[start + shift_ours : start + shift_ours + size_ours]
        right = theirs[start + shift_theirs : start + shift_theirs + size_theirs]
        _settle(merged, base[start:stop], left, right, names)
        shift_ours += size_ours - (stop - start)
        shift_theirs += size_theirs - (stop - start)
        position = stop
    merged.lines += base[position:]
    return merged


def _growth(edit):
    return (edit.b_stop - edit.b_start) - (edit.a_stop - edit.a_start)


def _regions(mine, yours):
    """Yield ``(start, stop, mine, yours)``: parts of the base with the edits of both sides that touch there."""
    tagged = [(edit.a_start, edit.a_stop, side, edit) for side, edits in enumerate((mine, yours)) for edit in edits]
    tagged.sort(key=lambda item: item[:3])
    current = None
    for start, stop, side, edit in tagged:
        if current is None or start > current[1]:
            if current is not None:
                yield current
            current = (start, stop, [], [])
        current = (current[0], max(current[1], stop), current[2], current[3])
        current[2 + side].append(edit)
    if current is not None:
        yield current


def _settle(merged, old, left, right, names):
    if left == right or right == old:
        merged.lines += left
    elif left == old:
        merged.lines += right
    else:
        first = len(merged.lines)
        merged.lines += [f"<<<<<<< {names[0]}", *left, "=======", *right, f">>>>>>> {names[1]}"]
        merged.conflicts.append((first, len(merged.lines) - 1))
