"""Work that a person asks for beside a search, prepared and performed; for the commands and for ``dgm.api``.

Each module finds every error before anything is paid for, tells a ``launch.Watcher`` how it goes, and returns a result.
Options, printing and exit codes are left to ``dgm.cli``.
"""
