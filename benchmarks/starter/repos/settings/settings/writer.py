"""Settings as text that the reader understands."""


def _quoted(value):
    """Return ``value`` as it must be written to be read back unchanged."""
    plain = value == value.strip() and not any(mark in value for mark in '#;"\n\t\\')
    if plain and value:
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def write_text(tree):
    """Write a mapping of sections to mappings, sorted, one blank line between sections."""
    blocks = []
    for section in sorted(tree):
        lines = [f"[{section}]"]
        lines += [f"{key} = {_quoted(value)}" for key, value in sorted(tree[section].items())]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)
