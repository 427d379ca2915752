"""Known vulnerabilities of what is installed, and whether they were looked up at all.

Usage: python tools/safety.py PIP_AUDIT FOLDER

pip-audit is content when the index knows none of the packages, as a mirror may not, or
there is no network. That must not pass for safety: most packages have to be found.
"""

import json
import subprocess
import sys
from typing import Any

# Of all packages; torch's own builds, and tools of this repository, are on no index.
LEAST_SHARE = 0.9


def verdict(dependencies: list[dict[str, Any]]) -> tuple[list[str], bool]:
    """What to say of pip-audit's findings, and whether all is well."""
    audited = [one for one in dependencies if "vulns" in one]
    lines = [
        f"{one['name']} {one['version']}: {fault['id']}, mended in "
        f"{', '.join(fault['fix_versions']) or 'no version yet'}"
        for one in audited
        for fault in one["vulns"]
    ]
    enough = len(audited) >= LEAST_SHARE * len(dependencies) > 0
    lines.append(f"{len(audited)} of {len(dependencies)} packages were looked up.")
    if not enough:
        lines.append("That says nothing: is there a network, and is the index PyPI?")
    return lines, enough and len(lines) == 1


def main() -> int:
    """Audit a folder of installed packages."""
    command, folder = sys.argv[1:]
    options = ["--path", folder, "--skip-editable", "--format", "json"]
    done = subprocess.run(
        [command, *options, "--progress-spinner", "off"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    try:
        found = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return done.returncode or 1  # it has said why
    lines, safe = verdict(found)
    print("\n".join(lines))
    return not safe


if __name__ == "__main__":
    sys.exit(main())
