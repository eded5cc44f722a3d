"""The words that a release was made from."""

from daemon.core.rows import NewReport
from daemon.store.db import Store
from daemon.store.instructions import NewInstruction
from daemon.store.said import Said
from tests.fakes.exchanges import Conversation


def test_reports_and_instructions_are_told_in_order_in_their_words(store: Store) -> None:
    receipt = Conversation(store).turn("q").receipt
    store.report(NewReport(id="rep_1", scenario="default", score=0.0, feedback="wrong")).result(20)
    edited = {"edited": "as it should be"}
    store.report(NewReport(id="rep_2", scenario="default", references=(receipt,), metadata=edited)).result(20)
    store.learning.instruct(NewInstruction("ins_1", "default", "Use uv.")).result(20)
    assert store.words("default", ["ins_1", "rep_2", "gone", "rep_1"]) == [
        Said("ins_1", "instruction", None, "Use uv."),
        Said("rep_2", "report", None, "as it should be"),
        Said("rep_1", "report", 0.0, "wrong"),
    ]
    assert store.words("other", ["ins_1", "rep_1"]) == []
    assert store.words("default", []) == []
