"""What each key's command does, run as the table says it: none of them is refused for how it is written."""

from collections.abc import Callable, Iterator

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from reef_cli.tui.keys import KEYS
from tests.fakes.daemon import running_daemon
from tests.fakes.provider import running_provider
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Result

#: One has no end, one would start a daemon, help is not a command.
_APART = {"reef traces tail", "reef start", "reef --help"}
_TWINS = sorted({twin for key in KEYS for twin in key.twins} - _APART)
_WORDS = {"TEXT": "text", "N": "3", "QUERY": "words", "WORDS": "words", "NAME": "nobody", "--sort": "--sort=tokens"}
_IDS = {"releases": "r9-00000000", "jobs": "job_0"}
#: There is no such release, job or model, and none that clients are held at.
_FINE = {ExitCode.OK, ExitCode.NOT_FOUND, ExitCode.STALE}


@pytest.fixture(scope="module")
def served(module_home: Home) -> Iterator[Served]:
    scores = "scenarios: {default: {scores: [1, 5]}}\n"
    with running_provider() as provider, running_daemon(module_home, provider.config() + scores) as daemon:
        yield Served(daemon, provider)


@pytest.mark.parametrize("twin", _TWINS)
def test_it_is_a_command_that_runs(run_reef: Callable[..., Result], served: Served, twin: str) -> None:
    run_reef(served.home, "resume")
    receipt = served.ask("what is to be done?")
    session = served.daemon.get(f"/reef/records/{receipt}")["session"]
    _, noun, *rest = twin.split()
    known = {**_WORDS, "RECEIPT": receipt, "ID": _IDS.get(noun, session)}
    if twin == "reef undo RECEIPT":
        run_reef(served.home, "good", receipt)
    result = run_reef(served.home, noun, *(known.get(word, word) for word in rest), "--json")
    assert result.code in _FINE, result.err
    assert "Traceback" not in result.err
