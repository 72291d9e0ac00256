"""The console script's entry: `python -m robustbench_elliptical` is `elliptical-robust`."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C leaves quietly even while it is still being imported."""
    try:
        from robustbench_elliptical.cli.main import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
