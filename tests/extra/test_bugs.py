"""Each public defect of a program like this one has a test that names it.

An extra, like `tests.extra.test_cases`: it runs where the list is, and says so where it is not.
"""

import ast
import re
from functools import cache

import pytest

from tests.conftest import ROOT
from tests.extra.test_cases import CAPTURES

BUGS = CAPTURES.with_name("BUGS.md")

pytestmark = pytest.mark.skipif(not BUGS.exists(), reason=f"no list at {BUGS}")


def rows() -> list[str]:
    lines = BUGS.read_text(encoding="utf-8").splitlines() if BUGS.exists() else []
    return [line.split("|")[1].strip() for line in lines if line.startswith("| B")]


@cache
def named() -> frozenset[str]:
    """Numbers in the docstrings of tests."""
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found.update(re.findall(r"\bB\d{3}\b", ast.get_docstring(node) or ""))
    return frozenset(found)


@pytest.mark.parametrize("number", rows() or ["none"])
def test_a_test_names_it(number: str) -> None:
    assert number in named()
