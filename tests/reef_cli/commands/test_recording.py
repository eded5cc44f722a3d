"""`reef pause · resume`."""

import json

import pytest

from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


def test_pausing_and_resuming_say_what_is_so(served: Served, cli: Reef) -> None:
    assert cli("pause").out == "recording is paused until reef resume; agents are served\n"
    status = cli("status").out
    assert "recording  paused until reef resume\n" in status
    assert status.endswith("next: reef resume\n")
    assert "reef resume" in cli("doctor").out
    assert cli("resume").out == "recording is on\n"
    assert "paused" not in cli("status").out


def test_a_pause_with_an_end_says_when(served: Served, cli: Reef) -> None:
    told = json.loads(cli("pause", "--for", "10m", "--json").out)
    assert (told["state"], told["until_ns"] > 0) == ("paused", True)
    assert "paused until 20" in cli("status").out or "paused until " in cli("status").out
    cli("resume")


@pytest.mark.parametrize("span", ["0s", "1y", "soon", "-1h"])
def test_a_span_that_is_none_is_named(served: Served, cli: Reef, span: str) -> None:
    result = cli("pause", "--for", span)
    assert result.code == 2
    assert span in result.err
