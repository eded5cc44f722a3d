import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.engines.llama.model import Model, Vocab
from daemon.engines.llama.slots import Slot, tokenize_like

HEAD = b"<|im_start|>user\nHello there<|im_end|>\n<|im_start|>assistant\n"
NEXT = b"<|im_end|>\n<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture
def vocab(model: Model) -> Vocab:
    return model.vocab


@pytest.fixture
def slot(vocab: Vocab) -> Slot:
    """A conversation whose answer, "Hi", was sampled letter by letter: not what the tokenizer would choose."""
    slot = Slot(0)
    slot.assign(vocab.tokenize(HEAD), HEAD, vocab)
    for letter in (b"H", b"i"):
        [token] = vocab.tokenize(letter)
        slot.append(token, letter)
    slot.read = len(slot.tokens)
    return slot


@pytest.mark.engine
def test_a_conversation_that_goes_on_keeps_every_token(slot: Slot, vocab: Vocab) -> None:
    text = HEAD + b"Hi" + NEXT
    tokens = tokenize_like(slot, text, vocab)
    assert tokens[: len(slot.tokens)] == slot.tokens
    assert vocab.tokenize(text)[: len(slot.tokens)] != slot.tokens  # what a plain comparison would have lost
    assert b"".join(map(vocab.piece, tokens)) == text


@pytest.mark.engine
def test_an_answer_that_comes_back_changed_is_read_again_from_its_turn(slot: Slot, vocab: Vocab) -> None:
    text = HEAD + b"Hi!" + NEXT
    tokens = tokenize_like(slot, text, vocab)
    turn = vocab.tokenize(HEAD)
    assert tokens[: len(turn)] == turn
    assert b"".join(map(vocab.piece, tokens)) == text
    assert tokens == vocab.tokenize(text)


@pytest.mark.engine
def test_earlier_answers_keep_their_tokens_when_a_later_turn_changes(slot: Slot, vocab: Vocab) -> None:
    longer = Slot(1)
    text = HEAD + b"Hi" + NEXT
    longer.assign(tokenize_like(slot, text, vocab), text, vocab)
    other = HEAD + b"Hi" + NEXT.replace(b"now", b"then")
    tokens = tokenize_like(longer, other, vocab)
    assert tokens[: len(slot.tokens)] == slot.tokens
    assert b"".join(map(vocab.piece, tokens)) == other


@pytest.mark.engine
def test_another_conversation_shares_nothing(slot: Slot, vocab: Vocab) -> None:
    text = b"<|im_start|>system\nElse<|im_end|>\n"
    assert tokenize_like(slot, text, vocab) == vocab.tokenize(text)
    assert tokenize_like(Slot(3), text, vocab) == vocab.tokenize(text)


@pytest.mark.engine
def test_a_tokenizer_that_adds_spaces_only_loses_the_fine_seams(slot: Slot, vocab: Vocab) -> None:
    slot.starts = None  # as for pieces that do not add up to the text
    assert tokenize_like(slot, HEAD + b"Hi" + NEXT, vocab)[: len(slot.tokens)] == slot.tokens
    changed = HEAD + b"Hi!" + NEXT
    assert tokenize_like(slot, changed, vocab) == vocab.tokenize(changed)


@pytest.mark.engine
@given(
    st.lists(
        st.sampled_from(["Hi", " there", "<|im_end|>", "<|im_start|>", "\n", "user", "é🦀", "  ", "\x00"]), max_size=9
    )
)
def test_tokens_always_spell_the_text(model: Model, pieces: list[str]) -> None:
    vocab = model.vocab
    slot = Slot(0)
    slot.assign(vocab.tokenize(HEAD), HEAD, vocab)
    for text in (HEAD + "".join(pieces).encode(), "".join(pieces).encode()):
        assert b"".join(map(vocab.piece, tokenize_like(slot, text, vocab))) == text


@pytest.mark.engine
def test_forgetting_leaves_an_empty_slot(slot: Slot) -> None:
    slot.forget()
    assert (slot.tokens, slot.read, bytes(slot.text), slot.starts, slot.unread) == ([], 0, b"", [], 0)
