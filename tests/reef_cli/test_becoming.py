"""A program that another became finds the signals as that one found them."""

import subprocess
import sys
from pathlib import Path

_BECOMES = """
import os
from reef_cli.becoming import become
become("/bin/grep", ["grep", "SigIgn", "/proc/self/status"], dict(os.environ))
"""


def test_nothing_is_ignored_that_was_not() -> None:
    def ignored(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]).stdout

    plain = ignored("/bin/grep", "SigIgn", "/proc/self/status")
    assert ignored(sys.executable, "-c", _BECOMES) == plain
    assert ignored(sys.executable, "-c", _BECOMES.replace("become(", "os.execve(")) != plain
