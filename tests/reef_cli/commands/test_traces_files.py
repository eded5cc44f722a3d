"""`reef traces export · import`."""

import json
from pathlib import Path

from daemon.core.errors import ExitCode
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef

TALK = {"messages": [{"role": "user", "content": "from a file"}, {"role": "assistant", "content": "kept"}]}


def test_what_is_exported_can_be_imported(served: Served, cli: Reef, tmp_path: Path) -> None:
    served.ask("exported to a file", scenario="out")
    file = tmp_path / "traces.jsonl"
    told = cli("traces", "export", "scenario:out", "-o", str(file), "--json").json()
    assert told == {"path": str(file), "lines": 1, "form": "records"}
    assert file.stat().st_mode & 0o777 == 0o600
    assert cli("traces", "export", "scenario:out").out == file.read_text()
    again = cli("traces", "import", str(file), "--scenario", "out", "--json").json()
    assert again == {"records": 1, "reports": 0}
    assert len(cli("traces", "list", "--scenario", "out", "--json").json()["items"]) == 1


def test_messages_and_trajectories_are_imported_and_twice_is_once(served: Served, cli: Reef, tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    file.write_text(json.dumps(TALK) + "\n\n" + json.dumps(TALK) + "\n")
    for _ in range(2):
        assert cli("traces", "import", str(file), "--scenario", "files").out.startswith("2 records, 0 reports")
    (row,) = cli("traces", "list", "--scenario", "files", "--json").json()["items"]
    assert row["title"] == "from a file"
    trajectory = cli("traces", "export", "scenario:files", "--form", "atif").out
    whole = tmp_path / "trajectory.json"
    whole.write_text(json.dumps(json.loads(trajectory), indent=2))
    assert cli("traces", "import", str(whole), "--scenario", "atif", "--json").json()["records"] == 1


def test_an_imported_receipt_is_taken_wherever_one_is(served: Served, cli: Reef, tmp_path: Path) -> None:
    """One that Reef gave to a line without an id, and two of their own, one the beginning of the other."""
    file = tmp_path / "talk.jsonl"
    lines: list[object] = [{"messages": [{"role": "user", "content": "tapir"}, {"role": "assistant", "content": "no"}]}]
    for id in ("mine-1", "mine-10"):
        response = {"choices": [{"message": {"role": "assistant", "content": "it swims"}}]}
        payload = {"model": "m", "messages": [{"role": "user", "content": id}], "response": response}
        lines.append({"agent_record_id": id, "request_type": "inference", "payload": payload})
    file.write_text("\n".join(map(json.dumps, lines)))
    assert cli("traces", "import", str(file), "--scenario", "named").code == 0
    rows = cli("traces", "search", "scenario:named", "--json").json()["items"]
    receipts = [row["record"]["receipt"] for row in rows]
    assert receipts[:2] == ["mine-10", "mine-1"]
    assert receipts[2].startswith("imp_")
    for receipt in receipts:
        assert receipt in cli("traces", "show", receipt).out
        for words in (
            ("good", receipt),
            ("note", "so so", receipt),
            ("edit", receipt, "--text", "so"),
            ("undo", receipt),
        ):
            assert cli(*words).code == 0, words
    for receipt in receipts:
        assert cli("traces", "purge", receipt, "--yes").out.startswith("gone: 1 record")
        assert cli("traces", "show", receipt).code == ExitCode.NOT_FOUND


def test_a_line_that_cannot_be_read_is_named(served: Served, cli: Reef, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    for text, named in (("{broken", "line 1 is not JSON"), ('{"prompt": 1}', "line 1: "), ("[1]", "line 1 is list")):
        file.write_text(text)
        told = cli("traces", "import", str(file), "--json")
        assert told.code == ExitCode.USAGE
        assert named in str(told.error()["message"])
    assert cli("traces", "import", str(tmp_path / "none")).code == ExitCode.NOT_FOUND


def test_what_was_seen_on_the_wire_is_not_there_twice_after_its_export_is_imported(
    served: Served, cli: Reef, tmp_path: Path
) -> None:
    """A file of what agents said must not count again what they said through the daemon (ccusage/ccusage#1698)."""
    served.ask("seen on the wire", scenario="wire")
    before = cli("traces", "list", "--scenario", "wire", "--json").json()["items"]
    for form in ("records", "openai", "atif"):
        file = tmp_path / form
        file.write_text(cli("traces", "export", "scenario:wire", "--form", form).out)
        assert cli("traces", "import", str(file), "--scenario", "wire", "--json").json()["records"] == 1
        assert cli("traces", "list", "--scenario", "wire", "--json").json()["items"] == before, form
