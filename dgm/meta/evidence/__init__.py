"""What an agent sees of its own work when it improves itself.

Only tasks of the search split come here, and of those only what the agent itself could see plus the names and the
output of failed tests: never a hidden test's source, never a reference fix.
"""

from dgm.meta.evidence.cases import circumstances, conversation_text, cut, facts
from dgm.meta.evidence.flat import folder

__all__ = ["circumstances", "conversation_text", "cut", "facts", "folder"]
