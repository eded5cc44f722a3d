"""`reef tasks run`: what serves now, a line a task and the sums."""

import json

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from tests.daemon.server.test_measure import serving
from tests.reef_cli.conftest import Reef


def test_it_tells_a_line_a_task_and_the_sums(reef: Reef, reef_home: Home) -> None:
    with serving(reef_home):
        told = reef("tasks", "run")
        lines = [json.loads(line) for line in reef("tasks", "run", "--json").out.splitlines()]
    assert told.code == ExitCode.OK, told.err
    assert "passed  What is rain?" in told.out
    assert "FAILED  What is snow?\n        Frozen water. It falls slowly.\n" in told.out
    assert told.out.splitlines()[-1] == "gate: 1 of 1 passed, regression: 0 of 1 passed"
    assert sorted(line["passed"] for line in lines) == [False, True]
