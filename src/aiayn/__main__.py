"""``aiayn``, and ``python -m aiayn``, which ``torchrun -m aiayn`` needs."""

import sys


def main() -> None:
    """The command line; whoever stops it while torch is imported gets no trace."""
    try:
        from aiayn.cli import main as run
    except KeyboardInterrupt:
        print("aiayn: Stopped.", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
