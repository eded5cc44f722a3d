"""`reef traces purge` and `reef audit`."""

import pytest

from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


def test_a_dry_run_tells_and_leaves(served: Served, cli: Reef) -> None:
    receipt = served.ask("look at me")
    result = cli("traces", "purge", receipt, "--dry-run")
    assert result.out.startswith("would go: 1 record, 1 session, 0 reports, ")
    assert cli("traces", "show", receipt).code == 0


def test_nothing_goes_unless_a_person_says_so(served: Served, cli: Reef) -> None:
    receipt = served.ask("keep me")
    result = cli("traces", "purge", receipt)
    assert result.code == 2
    assert "add --yes" in result.err
    assert cli("traces", "show", receipt).code == 0


def test_what_was_said_is_gone(served: Served, cli: Reef) -> None:
    receipt = served.ask("forget me")
    cli("bad", receipt)
    result = cli("traces", "purge", receipt, "--yes")
    assert result.out.startswith("gone: 1 record, 1 session, 1 report, ")
    assert cli("traces", "show", receipt).code == 5
    assert cli("traces", "purge", receipt, "--yes").code == 5


def test_what_others_hold_is_said_to_stay(served: Served, cli: Reef) -> None:
    first: dict[str, object] = {"role": "user", "content": "a beginning that two have"}
    one = served.converse(first)
    served.converse(first, {"role": "assistant", "content": "an answer"}, {"role": "user", "content": "and on"})
    assert "stays: " in cli("traces", "purge", one, "--yes").out


def test_a_purge_that_fits_nothing_says_so_and_asks_nobody(served: Served, cli: Reef) -> None:
    result = cli("traces", "purge", "--before", "2000-01-01", "--scenario", "default")
    assert (result.code, result.out) == (0, "would go: 0 records, 0 sessions, 0 reports, 0 messages\n")


@pytest.mark.parametrize("words", [(), ("--yes",), ("--before", "yesterday", "--yes")])
def test_nothing_named_or_nonsense_removes_nothing(served: Served, cli: Reef, words: tuple[str, ...]) -> None:
    served.ask("still here")
    before = cli("status", "--json").json()["counts"]["records"]
    assert cli("traces", "purge", *words).code == 2
    assert cli("status", "--json").json()["counts"]["records"] == before


def test_the_audit_log_is_read_and_checked(served: Served, cli: Reef) -> None:
    receipt = served.ask("audited")
    cli("traces", "purge", receipt, "--yes")
    listed = cli("audit", "-n", "5")
    assert "purge" in listed.out
    assert receipt[:30] in listed.out
    assert cli("audit", "--json").json()["items"][0]["event"] == "purge"
    checked = cli("audit", "--verify")
    assert checked.code == 0
    assert checked.out.startswith("sound: ")
    assert cli("audit", "--json").json()["items"][0]["hash"] in checked.out
