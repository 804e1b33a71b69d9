"""``python -m dgm`` is the ``dgm`` command."""

from dgm.cli.main import main

if __name__ == "__main__":
    main()
