"""What curves cost; what they look like is with the jobs (tests/reef_cli/tui/screens/test_jobs.py)."""

import subprocess
import sys

from tests.fakes.daemon import REPOSITORY

COVERS = ("reef_cli/tui/widgets/curves.py",)


def test_the_dashboard_starts_without_the_plotting_library() -> None:
    code = "import sys, reef_cli.tui.app; print([name for name in sys.modules if 'plotext' in name])"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
