"""Rules that look at whole records: each one returns a function that complains, or returns ``None``."""


def ascending(*names):
    """The values of these fields must not fall from one to the next; missing ones are passed over."""

    def check(record):
        present = [(name, record[name]) for name in names if record[name] is not None]
        for (low, first), (high, second) in zip(present, present[1:]):
            if first > second:
                return f"{high} is before {low}"
        return None

    return check


def unique(*names):
    """No two records may agree in all these fields."""
    seen = {}

    def check(record):
        key = tuple(record[name] for name in names)
        if key in seen:
            return f"same {', '.join(names)} as line {seen[key]}"
        seen[key] = record.line
        return None

    return check


def limit(name, highest):
    """A value above the limit is noted on the record, which stays valid."""

    def check(record):
        if record[name] is not None and record[name] > highest:
            record.notes.append(f"{name} is above {highest}")
        return None

    return check
