"""The words of learning: what is derived from them."""

from pathlib import Path

from daemon.core.learning import Experience, Feedback, JobState, Split
from daemon.core.releases import LoraFile

COVERS = ("releases.py",)


def _experience(*feedback: Feedback) -> Experience:
    return Experience(
        receipt="rec_1", session="ses_1", scenario="pi", split=Split.TRAIN, seq=1, release_id="base", staleness=0,
        weights=None, prompt=(), answer="an answer", feedback=feedback,
    )  # fmt: skip


def test_the_newest_word_counts() -> None:
    said = _experience(
        Feedback("rep_1", 0.0, "wrong", None),
        Feedback("rep_2", None, None, "a better one"),
        Feedback("rep_3", 1.0, None, None),
    )
    assert (said.score, said.edit) == (1.0, "a better one")
    assert (_experience().score, _experience().edit) == (None, None)


def test_a_job_is_over_when_nothing_more_will_come_of_it() -> None:
    assert [state.value for state in JobState if state.over] == ["done", "failed", "cancelled"]


def test_a_digest_names_model_and_lora() -> None:
    assert LoraFile(Path("x.gguf"), "bb", "aa").weights == "aa+bb"
