"""`reef good · bad · note · undo`: what is rated, and that it is on record."""

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from tests.reef_cli.commands.conftest import Served
from tests.reef_cli.conftest import Reef


def reports(served: Served, receipt: str) -> list[tuple[object, object, bool]]:
    rows = served.daemon.get(f"/reef/records/{receipt}")["reports"]
    return [(row["score"], row["feedback"], row["undone_ns"] is not None) for row in rows]


@pytest.mark.parametrize(("verb", "score"), [("good", 1.0), ("bad", 0.0)])
def test_a_rating_is_about_the_last_answer(served: Served, cli: Reef, verb: str, score: float) -> None:
    receipt = served.ask(f"rate me {verb}", answer="it was the\nlast answer\u202e")
    result = cli(verb)
    assert result.code == 0
    assert result.out.startswith(f"{verb}  {receipt}  it was the last answer")
    assert "\u202e" not in result.out
    assert reports(served, receipt) == [(score, None, False)]


def test_a_rating_of_a_named_record(served: Served, cli: Reef) -> None:
    receipt = served.ask("an early one")
    served.ask("a later one")
    told = cli("bad", receipt, "--json").json()
    assert told["references"] == [receipt]
    assert (told["score"], told["created"]) == (0.0, True)
    assert reports(served, receipt) == [(0.0, None, False)]


def test_a_note_keeps_its_words(served: Served, cli: Reef) -> None:
    receipt = served.ask("note me")
    words = 'use "uv", not pip; $(rm -rf) höre'
    assert cli("note", words).out.startswith(f"noted  {receipt}")
    assert reports(served, receipt) == [(None, words, False)]


@pytest.mark.parametrize("words", ["", "  \n"])
def test_a_note_has_words(served: Served, cli: Reef, words: str) -> None:
    receipt = served.ask("not noted")
    told = cli("note", words, "--json")
    assert (told.code, told.error()["message"]) == (ExitCode.USAGE, f"a note has words, not {words!r}")
    assert reports(served, receipt) == []


def test_an_edit_is_seen_where_it_is_shown_and_taken_back(served: Served, cli: Reef) -> None:
    receipt = served.ask("edit me")
    assert cli("edit", receipt, "--text", "Water.\nAnd more of it.").code == 0
    assert "  * edited: Water. …\n" in cli("traces", "show", receipt).out
    assert cli("undo").out == f"undone: edited: Water. … on {receipt}\n"
    assert "  * edited: Water. …  (undone)\n" in cli("traces", "show", receipt).out


def test_a_note_that_begins_with_a_dash(served: Served, cli: Reef) -> None:
    receipt = served.ask("note me with a dash")
    assert cli("note", "--", "-1 for style", receipt).code == 0
    assert reports(served, receipt) == [(None, "-1 for style", False)]


def test_a_rating_says_when_a_later_answer_was_not_recorded(served: Served, cli: Reef) -> None:
    receipt = served.ask("a recorded one")
    assert "not recorded" not in cli("good").err
    served.daemon.control("POST", "/reef/pause", {})
    try:
        served.ask("one that is not")
    finally:
        served.daemon.control("POST", "/reef/resume", {})
    told = cli("good")
    assert receipt in told.out
    assert "a later answer was not recorded (paused)" in told.err
    assert "not recorded" not in cli("good", receipt).err


def test_in_a_shell_of_an_agents_run_it_is_about_the_last_answer_of_that_run(
    served: Served, cli: Reef, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(text: str, run: str) -> str:
        said = {"model": "m", "messages": [{"role": "user", "content": text}]}
        return served.daemon.post("/v1/chat/completions", said, x_reef_tag_run=run, x_reef_scenario="runs")[1][
            "x-reef-agent-record-id"
        ]

    ask("first of one", "run_one")
    mine = ask("second of one", "run_one")
    ask("of another", "run_another")
    monkeypatch.setenv("REEF_RUN", "run_one")
    assert cli("good").out.startswith(f"good  {mine}")
    monkeypatch.setenv("REEF_SCENARIO", "runs")
    assert cli("note", "well").out.startswith(f"noted  {mine}")
    monkeypatch.setenv("REEF_RUN", "run_new")
    told = cli("bad", "--json")
    assert (told.code, told.error()["message"]) == (ExitCode.NOT_FOUND, "the run 'run_new' has no recorded answer yet")
    assert told.error()["hint"] == "ask its agent something first"
    assert cli("bad", mine).out.startswith(f"bad  {mine}")
    monkeypatch.setenv("REEF_RUN", "run_one")
    monkeypatch.setenv("REEF_SCENARIO", "default")
    assert cli("bad").code == ExitCode.NOT_FOUND


def test_a_record_of_another_scenario_is_rated_there(served: Served, cli: Reef) -> None:
    receipt = served.ask("from the work scenario", scenario="work/api")
    assert cli("good", receipt).code == 0
    assert reports(served, receipt) == [(1.0, None, False)]


def test_the_last_answer_of_any_scenario_is_rated(served: Served, cli: Reef) -> None:
    receipt = served.ask("the very last", scenario="work/api")
    assert receipt in cli("good").out


def test_undo_takes_the_last_one_back(served: Served, cli: Reef) -> None:
    receipt = served.ask("undo me")
    cli("bad")
    assert cli("undo").out == f"undone: bad on {receipt}\n"
    assert reports(served, receipt) == [(0.0, None, True)]


def test_undo_of_a_named_record(served: Served, cli: Reef) -> None:
    receipt = served.ask("undo this one")
    cli("note", "wrong", receipt)
    served.ask("rated later")
    cli("good")
    told = cli("undo", receipt, "--json").json()
    assert (told["feedback"], told["references"]) == ("wrong", [receipt])


def test_a_record_may_be_named_by_its_beginning(served: Served, cli: Reef) -> None:
    receipt = served.ask("named by its beginning")
    assert cli("good", receipt[:-2]).out.startswith(f"good  {receipt}")
    assert cli("undo", receipt[:-2]).out == f"undone: good on {receipt}\n"
    assert cli("bad", "rec_zz", "--json").error()["message"] == "no receipt begins with 'rec_zz'"


def test_undo_says_what_was_taken_back(served: Served, cli: Reef) -> None:
    receipt = served.ask("scored by a program")
    body = {"score": 0.7, "feedback": "so so", "references": [receipt]}
    assert served.daemon.post("/reef/report", body)[0] == 200
    assert cli("undo").out == f"undone: score 0.7: so so on {receipt}\n"


def test_an_unknown_record_is_not_found(served: Served, cli: Reef) -> None:
    result = cli("good", "rec_00000000000000000000000000", "--json")
    assert result.code == ExitCode.NOT_FOUND
    assert result.error()["kind"] == "not_found"
    assert result.out == ""


def test_nothing_to_rate_or_undo(reef: Reef, reef_home: Home) -> None:
    reef_home.config.write_text("server: {port: 0}\n")
    try:
        assert reef("good").code == ExitCode.NOT_FOUND
        assert reef("undo").code == ExitCode.NOT_FOUND
    finally:
        reef("stop")
