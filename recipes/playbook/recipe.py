"""The playbook recipe: what a person says becomes a counted rule of the harness, without any model (METHODS C9, ACE).

A note or an instruction is a rule as it was typed, also where it was said about one answer. Marks move the counters of
all rules that were told when the answer was given. Counters alone are never released: marks wait in the stream and are
carried by the next proposal that changes what agents are told. Whether a rule helps is the gate's question, not ours.
What is claimed counts once: marks in a batch whose candidate is turned down end there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from daemon.core import playbook
from daemon.core.errors import RecipeError
from daemon.core.learning import Batch, Experience
from daemon.core.plaintext import one_line
from daemon.core.playbook import Rule
from recipes.base import Acquisition, Context, Proposal, Recipe, Signal, Stream, Target
from recipes.playbook import rules

#: A score above it is a good mark, one below a bad one.
_EVEN: Final = 0.5
#: Characters of a rule in a reason.
_QUOTED: Final = 80


@dataclass(frozen=True, slots=True)
class PlaybookConfig:
    """``similarity``: from here on two texts are one rule (`recipes.playbook.rules.same`)."""

    max_rules: int = 40
    #: What all rules together may add to each request, in tokens, about.
    max_tokens: int = 2000
    max_characters: int = 400
    similarity: float = 0.8
    #: A rule goes when its bad marks exceed the good ones by this many.
    drop_margin: int = 3

    def __post_init__(self) -> None:
        for name in ("max_rules", "max_tokens", "max_characters", "drop_margin"):
            if getattr(self, name) < 1:
                raise RecipeError(f"playbook: {name} is {getattr(self, name)}, at least 1 is needed")
        if not 0 < self.similarity <= 1:
            raise RecipeError(f"playbook: similarity is {self.similarity}, above 0 and at most 1 is needed")


@dataclass(slots=True)
class _Changes:
    """What a batch does to the rules, told in the order of what matters."""

    added: list[str]
    harmful: list[str]
    surplus: list[str]

    def reason(self) -> str:
        told = [
            _told(self.added, "added"),
            _told(self.harmful, "removed after bad marks"),
            _told(self.surplus, "dropped to make room"),
        ]
        return "; ".join(part for part in told if part)


class PlaybookRecipe(Recipe):
    name: ClassVar[str] = "playbook"
    summary: ClassVar[str] = (
        "A note or an instruction becomes a rule that agents are told; marks count for and against."
    )
    signals: ClassVar[tuple[Signal, ...]] = (Signal.NOTE, Signal.INSTRUCTION, Signal.MARK)
    acquisition: ClassVar[Acquisition] = Acquisition.REACTIVE
    target: ClassVar[Target] = Target.HARNESS
    Config: ClassVar[type[PlaybookConfig]] = PlaybookConfig

    config: PlaybookConfig

    def select(self, stream: Stream) -> Batch | None:
        """Everything that waits, once there is a note or an instruction, or so many bad marks that a rule may have to
        go.
        """
        # Words beside a mark say why it was given ("nice", "not this"): nothing for an agent to do.
        notes, instructions = [said for said in stream.notes() if said.score is None], stream.instructions()
        marked = stream.experience(signals=(Signal.MARK,))
        good, bad = _marks(marked)
        if not notes and not instructions and bad - good < self.config.drop_margin:
            return None
        return Batch(experience=tuple(marked), notes=tuple(notes), instructions=tuple(instructions))

    def grow(self, batch: Batch, context: Context) -> Proposal | None:
        """The playbook with the batch's words added and its marks counted; None when agents would be told the same."""
        before = self._before(context)
        changes = _Changes([], [], [])
        # Answers of an earlier release were given under other rules.
        good, bad = _marks([each for each in batch.experience if each.staleness == 0])
        book = playbook.counted(before, helpful=good, harmful=bad)
        for text in [each.text for each in batch.instructions] + [each.text or "" for each in batch.notes]:
            book = self._taken(book, text, changes, context)
        for rule in rules.harmful(book, self.config.drop_margin):
            book = tuple(each for each in book if each.id != rule.id)
            changes.harmful.append(rule.text)
        if changes.added:
            for rule in rules.surplus(book, self.config.max_rules, self.config.max_tokens):
                book = tuple(each for each in book if each.id != rule.id)
                changes.surplus.append(rule.text)
        if playbook.told(book) == playbook.told(before):
            context.say("no rule comes or goes: nothing to propose")
            return None
        return Proposal(reason=changes.reason(), harness={playbook.PATH: playbook.dump(book)})

    @staticmethod
    def _before(context: Context) -> tuple[Rule, ...]:
        try:
            return playbook.parse(context.harness().get(playbook.PATH, ""))
        except ValueError as error:
            raise RecipeError(
                f"the release's {playbook.PATH} cannot be read: {error}", hint="reef releases rollback"
            ) from error

    def _taken(self, book: tuple[Rule, ...], text: str, changes: _Changes, context: Context) -> tuple[Rule, ...]:
        """With ``text`` as a rule: a new one, or a mark for the one that says the same. What cannot be one is said."""
        try:
            line = rules.cleaned(text, self.config.max_characters)
        except rules.NoRule as error:
            context.say(f"{_quoted(text)} is no rule: {error}")
            return book
        known = next((rule for rule in book if rules.same(rule.text, line, self.config.similarity)), None)
        if known is None:
            changes.added.append(line)
            return playbook.added(book, line)
        if known.text not in changes.added:
            context.say(f"{_quoted(line)} is rule {known.id} already: counted as helpful")
        return tuple(rule._replace(helpful=rule.helpful + 1) if rule is known else rule for rule in book)


def _marks(experience: Sequence[Experience]) -> tuple[int, int]:
    """Good and bad ones; the newest score of each answer counts."""
    scores = [each.score for each in experience if each.score is not None]
    return sum(score > _EVEN for score in scores), sum(score < _EVEN for score in scores)


def _quoted(text: str) -> str:
    return f'"{one_line(text, _QUOTED)}"'


def _told(texts: Sequence[str], what: str) -> str:
    if not texts:
        return ""
    more = f" and {len(texts) - 2} more" if len(texts) > 2 else ""
    noun = "rule" if len(texts) == 1 else f"{len(texts)} rules"
    return f"{noun} {what}: {', '.join(map(_quoted, texts[:2]))}{more}"
