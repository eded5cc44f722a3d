"""``POST /reef/pin`` and the commands for it, on a real daemon."""

import pytest

from daemon.core.errors import ExitCode
from tests.reef_cli.commands.conftest import Served, cli, served  # noqa: F401  (fixtures)
from tests.reef_cli.conftest import Reef, run_reef  # noqa: F401  (a fixture)

COVERS = ("reef_cli/commands/pins.py",)


def test_pin_and_unpin(served: Served, cli: Reef) -> None:  # noqa: F811
    receipt = served.ask("a golden one")
    session = served.daemon.get(f"/reef/records/{receipt}")["session"]
    assert cli("traces", "pin", receipt).out == f"{session}  pinned\n"
    assert cli("traces", "pin", session).out == f"{session}  pinned already\n"
    assert [one["id"] for one in cli("traces", "list", "is:pinned", "--json").json()["items"]] == [session]
    assert "  * a golden one" in cli("traces", "list").out
    assert "* pinned" in cli("traces", "show", receipt).out
    assert receipt in cli("traces", "export", "is:pinned").out
    asked = cli("traces", "purge", "--scenario", "default", "--dry-run", "--json").json()
    assert asked["kept_pinned"] == 1
    assert "stays: 1 pinned session" in cli("traces", "purge", "--scenario", "default", "--dry-run").out
    assert cli("traces", "purge", session, "--dry-run", "--json").json()["pinned"] == 1
    both = cli("traces", "purge", "--scenario", "default", "--pinned", "--dry-run", "--json").json()
    assert (both["pinned"], both["kept_pinned"]) == (1, 0)
    told = cli("traces", "unpin", session, "--json").json()
    assert told == {"sessions": [session], "pinned": False, "changed": [session]}
    assert cli("traces", "list", "is:pinned", "--json").json()["items"] == []


def test_nobody_is_pinned(cli: Reef) -> None:  # noqa: F811
    assert cli("traces", "pin", "ses_00000000000000000000000000").code == ExitCode.NOT_FOUND


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "sessions None is not a list"),
        ({"sessions": []}, "sessions [] is not a list"),
        ({"sessions": [1]}, "sessions [1] is not a list"),
        ({"sessions": ["ses_1"] * 501}, "501 sessions, the limit is 500"),
        ({"sessions": ["ses_1"], "pinned": 1}, "pinned 1 is neither"),
        ({"sessions": ["ses_1"], "golden": True}, "unknown field 'golden'"),
    ],
)
def test_what_is_no_pin(served: Served, body: dict[str, object], message: str) -> None:  # noqa: F811
    status, told = served.daemon.control("POST", "/reef/pin", body)
    assert status == 400
    assert message in told["error"]["message"]
