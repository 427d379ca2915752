"""An environment of its own for each peer, made when it is first needed.

It holds what the peer asks for, on top of the environment that runs the benchmark: that
one's packages are seen after the peer's own. So every peer computes with the very same
torch, no copy of it is made, and pip is told to keep it.
"""

import hashlib
import os
import shutil
import site
import subprocess
import sys
import venv
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers import Peer

FOLDER = Path(__file__).parent / ".environments"
MINUTES = 10  # that pip may take


class NotInstallableError(Exception):
    """A peer cannot be installed; the message is pip's last word, in one line."""


def python_of(peer: Peer) -> Path:
    """The interpreter of a peer's environment, which is made if it is not there.

    Raises:
        NotInstallableError: pip gave up, or took too long.
    """
    if not peer.requirements and not peer.bare:
        return Path(sys.executable)
    parts = [sys.prefix, version("torch"), *peer.requirements, "bare", *peer.bare]
    wanted = "\n".join(parts)
    folder = FOLDER / hashlib.sha256(wanted.encode()).hexdigest()[:12]
    python, ready = folder / "bin/python", folder / "ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        _see_packages_of_this_environment(folder)
        _install(python, folder, peer)
        ready.write_text(wanted, encoding="utf-8")
    return python


def _see_packages_of_this_environment(folder: Path) -> None:
    """A .pth file appends a path, so what the peer installs itself is found first."""
    packages = next(folder.glob("lib/python*/site-packages"))
    lines = "\n".join(str(Path(p).resolve()) for p in site.getsitepackages())
    (packages / "beneath.pth").write_text(lines + "\n", encoding="utf-8")


def _install(python: Path, folder: Path, peer: Peer) -> None:
    constraints = folder / "constraints.txt"
    torch = version("torch").partition("+")[0]
    constraints.write_text(f"torch=={torch}\n", encoding="utf-8")
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "-q"]
    if peer.pip:
        _run([*pip, peer.pip])
    if peer.requirements:
        _run([*pip, "-c", str(constraints), *peer.requirements])
    if peer.bare:
        # fairseq's own switch, meant for whoever only builds its documentation.
        switch = {"READTHEDOCS": "1"} if peer.plain_python else {}
        _run([*pip, "--no-deps", *peer.bare], **switch)


def _run(command: list[str], **environment: str) -> None:
    try:
        done = subprocess.run(
            command,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=60 * MINUTES,
        )
    except subprocess.TimeoutExpired:
        raise NotInstallableError(f"pip took more than {MINUTES} minutes.") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        raise NotInstallableError((errors or lines or ["pip failed."])[-1].strip())


def versions(python: Path, peer: Peer) -> dict[str, str]:
    """The versions of what the peer asked for, as its environment has them."""
    names = [text.partition("==")[0] for text in (*peer.requirements, *peer.bare)]
    code = (
        "import sys; from importlib.metadata import version; "
        "print(*(version(name) for name in sys.argv[1:]))"
    )
    done = subprocess.run(
        [str(python), "-c", code, *names], capture_output=True, text=True, check=True
    )
    return dict(zip(names, done.stdout.split(), strict=True))
