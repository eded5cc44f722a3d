"""The model as its own teacher: what it answers with a note before its eyes, and whether that obeys the note.

Every round of answers is kept in the job's directory, so that a killed job does not ask again. Earlier habits are kept
by asking what the scenario serves, not the model alone, once it serves weights: training starts from the model.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from daemon.core.learning import Check, Experience, TaskSet
from daemon.core.paths import write_private
from recipes.base import Answer, Context, Which
from recipes.sft.config import SFTConfig
from recipes.sft.conversations import Conversation, example, hinted

#: Edited answers that are shown to the model where the note alone is not enough.
_SHOWN: Final = 3
_REPLAY_TOKENS: Final = 64


class Teacher:
    def __init__(self, context: Context, config: SFTConfig) -> None:
        self._context = context
        self._config = config
        head = context.incumbent
        self._which = Which.HEAD if head is not None and head.weights is not None else Which.BASE

    def teach(self, note: str, experience: Sequence[Experience]) -> list[dict[str, Any]] | None:
        """Examples of answers that obey ``note`` to questions that do not hold it; None, said why, when this model does
        not obey it often enough.
        """
        check = self._check()
        if check is None and not self._config.unchecked:
            self._context.say(
                "no tasks say when an answer obeys the note: add some with one check "
                "(reef tasks add --form one_sentence …), or set unchecked: true to learn without"
            )
            return None
        edited = [one for one in experience if one.edit]
        questions = [one.prompt for one in experience if not one.edit]
        lesson = _Lesson(note, questions, check)
        kept = self._round(lesson, 0, ())
        shown: Sequence[Experience] = ()
        if check is None:
            self._context.say("no tasks check the answers: learning from all that ended")
        else:
            enough = self._enough(lesson, kept, edited)
            if enough is None:
                return None
            kept, shown = enough
        for number in range(1, self._config.samples):
            kept = kept + self._round(lesson, number, shown)
        return kept

    def _enough(
        self, lesson: "_Lesson", kept: list[dict[str, Any]], edited: Sequence[Experience]
    ) -> tuple[list[dict[str, Any]], Sequence[Experience]] | None:
        """The first round if it obeys often enough, else the one with edited answers shown, and those. Says which of
        three it is: the note is enough, an edit is needed, this model can't.
        """
        alone = lesson.share(kept)
        if alone >= self._config.obedience:
            self._context.say(f"this note is enough: told it, the model obeys in {lesson.figures(kept)}")
            return kept, ()
        if not edited:
            self._context.say(
                f"edit one or two answers: told the note alone, the model obeys in {lesson.figures(kept)}; "
                "with an answer as you would have it, it may (reef edit)"
            )
            return None
        shown = edited[-_SHOWN:]
        again = self._round(lesson, 0, shown)
        if lesson.share(again) >= self._config.obedience:
            self._context.say(
                f"this note is enough with {len(shown)} of your edited answers before its eyes: the model obeys in "
                f"{lesson.figures(again)}, told the note alone in {lesson.figures(kept)}"
            )
            return again, shown
        self._context.say(
            f"this model can't: told the note it obeys in {lesson.figures(kept)}, with your edited answers too in "
            f"{lesson.figures(again)}; a larger model may (reef models)"
        )
        return None

    def replay(self, questions: Sequence[Conversation]) -> list[dict[str, Any]]:
        """The model's own answers, as far as they end soon."""
        answers = self._asked("replay", questions, tokens=_REPLAY_TOKENS, temperature=0.0, seed=self._config.seed)
        return [example(asked, said.text) for asked, said in zip(questions, answers, strict=True) if said.ended]

    def _check(self) -> Check | None:
        """What the gate's tasks all ask for; None when they ask for different things, or there are none."""
        checks = {task.check for task in self._context.tasks(TaskSet.GATE)}
        return checks.pop() if len(checks) == 1 else None

    def _round(self, lesson: "_Lesson", number: int, shown: Sequence[Experience]) -> list[dict[str, Any]]:
        """One answer to every question, those that ended and pass."""
        asked = [hinted(question, lesson.note, shown) for question in lesson.questions]
        seed = self._config.seed * 1000 + number
        name = f"answers {number + 1} of {self._config.samples} under the note" + (" with edits" if shown else "")
        answers = self._asked(
            name, asked, tokens=self._config.answer_tokens, temperature=self._config.temperature, seed=seed
        )
        kept = []
        for question, answer in zip(lesson.questions, answers, strict=True):
            if not answer.ended or not answer.text.strip():
                continue
            if lesson.check is None or self._context.passes(lesson.check, answer, question[-1].text):
                kept.append(example(question, answer.text.strip()))
        return kept

    def _asked(
        self, name: str, conversations: Sequence[Conversation], *, tokens: int, temperature: float, seed: int
    ) -> list[Answer]:
        """From the job's directory where this was asked before."""
        parts = repr((self._which, conversations, tokens, temperature, seed)).encode()
        kept = self._context.directory / f"answers-{hashlib.sha256(parts).hexdigest()[:16]}.json"
        if kept.exists():
            return [Answer(**fields) for fields in json.loads(kept.read_text("utf-8"))]
        self._context.progress("ask", 0, len(conversations), name)
        answers = self._context.answer(
            conversations, which=self._which, max_tokens=tokens, temperature=temperature, seed=seed
        )
        self._context.progress("ask", len(conversations), len(conversations), name)
        write_private(kept, json.dumps([asdict(answer) for answer in answers]).encode())
        return answers


@dataclass(frozen=True, slots=True)
class _Lesson:
    note: str
    questions: Sequence[Conversation]
    check: Check | None

    def share(self, kept: Sequence[object]) -> float:
        return len(kept) / max(len(self.questions), 1)

    def figures(self, kept: Sequence[object]) -> str:
        return f"{len(kept)} of {len(self.questions)} answers"
