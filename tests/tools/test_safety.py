"""No vulnerability is known only where somebody has looked."""

import pytest

import safety

SOUND = {"name": "sound", "version": "1", "vulns": []}
SKIPPED = {"name": "local", "skip_reason": "Dependency not found on PyPI"}
FAULT = {"id": "PYSEC-1", "fix_versions": ["3"]}
FAULTY = {"name": "faulty", "version": "2", "vulns": [FAULT]}


@pytest.mark.parametrize(
    ("found", "said", "safe"),
    [
        ([SOUND] * 9 + [SKIPPED], "9 of 10 packages were looked up", True),
        ([SOUND] * 9 + [FAULTY], "faulty 2: PYSEC-1, mended in 3", False),
        ([SOUND] * 8 + [SKIPPED] * 2, "That says nothing", False),
        ([], "That says nothing", False),
    ],
)
def test_a_verdict_needs_packages_that_were_looked_up(found, said, safe):
    lines, verdict = safety.verdict(found)
    assert said in "\n".join(lines)
    assert verdict is safe
