"""`reef` as a person calls it, in this process, against a home of its own."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from daemon.core.paths import Home
from reef_cli.main import main


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def error(self) -> Any:
        """The envelope that ``--json`` puts on stderr."""
        return json.loads(self.err.splitlines()[-1])["error"]


Reef = Callable[..., Result]


@pytest.fixture
def run_reef(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """``run_reef(home, "status", "--json")``."""

    def run(home: Home, *words: str) -> Result:
        monkeypatch.setenv("REEF_HOME", str(home.root))
        capsys.readouterr()
        code = main(words)
        told = capsys.readouterr()
        return Result(code, told.out, told.err)

    return run


@pytest.fixture
def reef(run_reef: Callable[..., Result], reef_home: Home) -> Reef:
    """``reef("status")`` on a home where nothing runs yet."""
    return lambda *words: run_reef(reef_home, *words)
