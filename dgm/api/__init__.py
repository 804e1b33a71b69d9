"""dgm from a program: what each command does, as a call; ``dgm`` itself hands the names out.

The commands stand on the same functions. This package adds arguments with Python's names, errors that speak of them,
and waiting: what takes long blocks, also where a loop runs, and ends in good order on Ctrl-C.
"""
