"""A batch comes back from disk as it was claimed."""

import json

from daemon.core import plain
from daemon.core.learning import Batch, Experience, Feedback, Instruction, Split
from daemon.core.records import Image, Message, Text, Thinking, ToolResult, ToolUse

PROMPT = (
    Message("system", (Text("You help."),)),
    Message("user", (Text("look: "), Image("image/png", "sha256:ab"))),
    Message("assistant", (Thinking("hm"), ToolUse("c1", "bash", '{"command":"ls'))),
    Message("tool", (ToolResult("c1", "file", is_error=True),)),
)
ONE = Experience(
    "rec_a", "ses_a", "default", Split.SEARCH, 7, "r3-ab", 2, "abc+def", PROMPT, "it is a file\u202e",
    (Feedback("rep_a", 0.5, "hm", None, general=True), Feedback("rep_b", None, None, "a file")), (1, 2), (-0.5, -1.25),
)  # fmt: skip
BATCH = Batch(
    (ONE,), (Feedback("rep_a", None, "be brief", None),),
    (Instruction("ins_a", "default", "be kind", 5, requires=("uv",), job="job_a"),),
)  # fmt: skip


def test_a_batch_comes_back_as_it_was() -> None:
    assert plain.batch(json.loads(json.dumps(plain.of_batch(BATCH)))) == BATCH


def test_an_empty_batch_is_one_too() -> None:
    assert plain.batch(json.loads(json.dumps(plain.of_batch(Batch())))) == Batch()


def test_the_newest_word_counts() -> None:
    again = plain.experience(json.loads(json.dumps(plain.of_experience(ONE))))
    assert (again.score, again.edit) == (0.5, "a file")
