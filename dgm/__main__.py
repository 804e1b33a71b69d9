"""The ``dgm`` command, also as ``python -m dgm``."""


def main() -> None:
    """Run the program; Ctrl-C that comes too early or too late to be reported ends it without a traceback."""
    try:
        from dgm.cli.main import main as run_program

        run_program()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
