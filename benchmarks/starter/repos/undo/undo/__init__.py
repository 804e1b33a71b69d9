"""A document of lines with an editing history."""

from .changes import Delete, Group, Insert
from .document import Document
from .editor import Editor
from .errors import ConflictError, HistoryError
from .history import History

__all__ = ["ConflictError", "Delete", "Document", "Editor", "Group", "History", "HistoryError", "Insert"]
