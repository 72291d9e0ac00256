"""`python -m robustbench_elliptical` is `elliptical-robust`."""

from robustbench_elliptical.cli.main import run

if __name__ == "__main__":
    run()
