"""A slot: one sequence of the context's memory, the tokens in it and the text they stand for.

Keeping the text beside the tokens is what makes a growing conversation cheap: a model's answer, tokenized again, often
gives other tokens than those it sampled, and from there on a comparison of tokens finds nothing to reuse.
Invariant: ``tokens`` stands for ``text``; the first ``read`` of them are in memory, at positions 0..read-1.
"""

import bisect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from daemon.core.prefix import shared

if TYPE_CHECKING:
    from daemon.engines.llama.generation import Generation
    from daemon.engines.llama.model import Vocab


@dataclass(slots=True)
class Slot:
    sequence: int
    #: For requests that give way to all others.
    background: bool = False
    tokens: list[int] = field(default_factory=list)
    read: int = 0
    text: bytearray = field(default_factory=bytearray)
    #: Where each token starts in ``text``; None when the pieces do not add up to it (a tokenizer that adds spaces).
    starts: list[int] | None = field(default_factory=list)
    generation: "Generation | None" = None
    #: Waits for memory that others hold; see Scheduler.
    parked: bool = False
    #: The scheduler's step at which it was last in use.
    used: int = 0

    @property
    def unread(self) -> int:
        return len(self.tokens) - self.read

    def forget(self) -> None:
        self.tokens, self.text, self.starts, self.read = [], bytearray(), [], 0

    def assign(self, tokens: list[int], text: bytes, vocab: "Vocab") -> None:
        """Set the conversation; ``read`` stays the caller's business."""
        self.tokens, self.text = tokens, bytearray(text)
        starts, position = [], 0
        for token in tokens:
            starts.append(position)
            position += len(vocab.piece(token))
        self.starts = starts if position == len(text) else None

    def append(self, token: int, piece: bytes) -> None:
        """One sampled token."""
        self.tokens.append(token)
        if self.starts is not None:
            self.starts.append(len(self.text))
        self.text += piece


def tokenize_like(source: Slot, text: bytes, vocab: "Vocab") -> list[int]:
    """Tokens of ``text`` that begin with as many of ``source``'s as their texts have in common.

    A seam is only put where a special token starts, because there the tokenizer itself starts afresh.
    """
    common = shared(source.text, text)
    if common == len(source.text):
        rest = vocab.tokenize(text[common:])
        if not rest or vocab.is_special(rest[0]):
            return source.tokens + rest
    if source.starts:
        index = bisect.bisect_right(source.starts, common) - 1
        while index > 0 and not (
            vocab.is_special(source.tokens[index])
            and source.starts[index] + len(vocab.piece(source.tokens[index])) <= common
        ):
            index -= 1
        return source.tokens[:index] + vocab.tokenize(text[source.starts[index] :])
    return vocab.tokenize(text)
