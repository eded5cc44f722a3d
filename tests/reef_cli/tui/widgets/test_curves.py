"""What curves cost; what they look like is with the jobs (tests/reef_cli/tui/screens/test_jobs.py)."""

import subprocess
import sys

from tests.fakes.daemon import REPOSITORY

COVERS = ("reef_cli/tui/widgets/curves.py",)


def test_nothing_imports_the_plotting_library_before_there_is_a_curve() -> None:
    code = "import sys, reef_cli.tui.app, reef_cli.tui.screens.jobs; print('plotext' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
