"""Each public defect that a dashboard or a trace could have has a test that names it.

An extra, like `tests.extra.test_cases`: it runs where the list is, and says so where it is not.
"""

import re

import pytest

from tests.conftest import ROOT
from tests.extra.test_cases import CAPTURES

BUGS = CAPTURES.with_name("BUGS.md")
AREAS = {"tui", "trace"}

pytestmark = pytest.mark.skipif(not BUGS.exists(), reason=f"no list at {BUGS}")


def rows() -> list[str]:
    """Numbers of those in our areas."""
    lines = BUGS.read_text(encoding="utf-8").splitlines() if BUGS.exists() else []
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("| B")]
    return [cell[1] for cell in cells if AREAS & set(re.split(r"[\s,/]+", cell[2]))]


@pytest.mark.parametrize("number", rows() or ["none"])
def test_a_test_names_it(number: str) -> None:
    names = re.compile(rf'def test_.*\n *""".*\b{number}\b')
    assert any(names.search(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("test_*.py"))
