"""Sets up this folder's chapters on a machine without a network.

    python classroom.py gather     with a network, once, on a machine of the same kind
    python classroom.py install    without one: makes the environment in .venv
    python classroom.py start      opens the chapters in JupyterLab

What follows ``gather`` goes to pip. PyTorch comes with its GPU parts, 3 GB in all; for
the small one say ``gather --extra-index-url ADDRESS``, with the address that PyTorch's
page on installing gives for a CPU.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WHEELS = HERE / "wheelhouse"
ENVIRONMENT = HERE / ".venv"


def package() -> str:
    """The package that came in this folder, with what the chapters need besides."""
    (wheel,) = HERE.glob("aiayn-*.whl")
    return f"{wheel}[book]"


def own_python() -> Path:
    """The environment's interpreter."""
    windows = ENVIRONMENT / "Scripts" / "python.exe"
    return windows if windows.exists() else ENVIRONMENT / "bin" / "python"


def gather(options: list[str]) -> None:
    """Fetch every wheel that the chapters and JupyterLab need."""
    command = [sys.executable, "-m", "pip", "download", "--only-binary", ":all:"]
    wanted = [package(), "jupyterlab"]
    subprocess.run([*command, "--dest", str(WHEELS), *options, *wanted], check=True)
    print(f"Gathered in {WHEELS}. Copy this folder to the classroom's machines.")


def install() -> None:
    """Make the environment from the gathered wheels alone."""
    if not any(WHEELS.glob("*.whl")):
        sys.exit("There are no wheels yet: run 'python classroom.py gather' online.")
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    command = [str(own_python()), "-m", "pip", "install", "--no-index"]
    wanted = [package(), "jupyterlab"]
    subprocess.run([*command, "--find-links", str(WHEELS), *wanted], check=True)
    print("Ready: python classroom.py start")


def start() -> None:
    """Open the chapters."""
    if not own_python().exists():
        sys.exit("There is no environment yet: run 'python classroom.py install'.")
    command = [str(own_python()), "-m", "jupyter", "lab", "notebooks"]
    subprocess.run(command, cwd=HERE, check=True)


def main(arguments: list[str]) -> None:
    """Do what the first argument says."""
    match arguments:
        case ["gather", *options]:
            gather(options)
        case ["install"]:
            install()
        case ["start"]:
            start()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
