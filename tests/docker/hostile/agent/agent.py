"""An agent that is told what to do by the file beside it (``act.py``), whatever the model would say."""

import sys

if sys.argv[-1] == "--check":
    print("ok")
    sys.exit(0)

import task

if task.DRY_RUN:
    task.ask("hello")
else:
    import act  # noqa: F401  (its body is the act)
