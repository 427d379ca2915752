"""Lighthouse on one page of the built site, compressed as a static host does it.

Lighthouse is a Node program and no dependency of this project; it is run where it is
installed. Its scores depend on what else the machine does, so the median of several
runs counts.
"""

import gzip
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tools.site.browser import Quiet, find_browser, served
from tools.site.checks import COMPRESSED_BY_A_HOST

CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
RUNS = 5


def find_lighthouse() -> str | None:
    """Where its command is: ``LIGHTHOUSE``, or on the path; None where it is not."""
    return os.environ.get("LIGHTHOUSE") or shutil.which("lighthouse")


class Compressing(Quiet):
    """Sends text compressed, and lets browsers keep what has a digest in its name."""

    def do_GET(self) -> None:  # noqa: N802 (the base class calls it so)
        """Answer with the file, compressed where that helps."""
        path = Path(self.translate_path(self.path))
        if path.suffix not in COMPRESSED_BY_A_HOST or not path.is_file():
            return super().do_GET()
        content = gzip.compress(path.read_bytes(), compresslevel=6)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        self.wfile.write(content)


def measure(site: Path, page: str, runs: int = RUNS) -> dict[str, Any]:
    """Median scores (0 to 100) of several runs with the profile of a phone.

    Returns:
        The page, Lighthouse's version, and for each category all scores and the median;
        and the audits that cost points in the last run.
    """
    with served(site, Compressing) as address:
        reports = [_report(address + page) for _ in range(runs)]
    scores = {
        name: [round(100 * r["categories"][name]["score"]) for r in reports]
        for name in CATEGORIES
    }
    return {
        "version": reports[-1]["lighthouseVersion"],
        "page": page,
        "scores": scores,
        "median": {name: statistics.median(all_) for name, all_ in scores.items()},
        "below": _below(reports[-1]),
    }


def _report(url: str) -> dict[str, Any]:
    """One run's report."""
    command, found = find_lighthouse(), find_browser()
    if command is None or found is None:
        raise RuntimeError("Lighthouse and Chromium are needed; install both.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        flags = "--headless --no-sandbox --disable-gpu"
        subprocess.run(
            [
                command,
                url,
                "--quiet",
                "--output=json",
                f"--output-path={file}",
                f"--chrome-flags={flags}",
                f"--only-categories={','.join(CATEGORIES)}",
            ],
            env={**os.environ, "CHROME_PATH": found[0]},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return json.loads(file.read_text(encoding="utf-8"))


def _below(report: dict[str, Any]) -> list[str]:
    """What cost points: the audits of the categories that are not perfect."""
    audits = report["audits"]
    return sorted(
        f"{name}: {reference['id']} {audits[reference['id']].get('displayValue', '')}"
        for name in CATEGORIES
        for reference in report["categories"][name]["auditRefs"]
        if reference["weight"] > 0
        and (audits[reference["id"]]["score"] or 0) < 0.9
        and audits[reference["id"]]["scoreDisplayMode"] != "notApplicable"
    )
