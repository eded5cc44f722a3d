"""What a vendor wants back with a thought goes to that vendor only."""

import pytest

from daemon.core.records import Dialect
from daemon.wire import seal


def test_a_vendors_own_value_is_sealed_with_its_name_and_comes_out_again() -> None:
    sealed = seal.read(seal.SIGNED, "c2ln")
    assert seal.value(sealed, seal.SIGNED) == "c2ln"
    assert seal.value(sealed, seal.ENCRYPTED) is None


def test_a_seal_that_a_client_carried_is_not_sealed_again() -> None:
    assert seal.read(seal.SIGNED, "openai:rs_1:abc") == "openai:rs_1:abc"


@pytest.mark.parametrize(
    ("dialect", "body", "foreign"),
    [
        (Dialect.MESSAGES, b'{"signature":"chat:"}', True),
        (Dialect.MESSAGES, b'{"signature" : "openai:rs_1:abc"}', True),
        (Dialect.MESSAGES, b'{"signature":"EqQB"}', False),
        (Dialect.MESSAGES, b'{"text":"{\\"signature\\":\\"chat:\\"}"}', False),
        (Dialect.MESSAGES, b'{"model":"openai:gpt"}', False),
        (Dialect.RESPONSES, b'{"encrypted_content":"anthropic:c2ln"}', True),
        (Dialect.RESPONSES, b'{"encrypted_content": "chat:"}', True),
        (Dialect.RESPONSES, b'{"encrypted_content":"gAAAA"}', False),
        (Dialect.CHAT, b'{"signature":"chat:"}', False),
    ],
)
def test_a_request_that_carries_another_vendors_seal_is_known(dialect: Dialect, body: bytes, foreign: bool) -> None:
    assert seal.foreign(dialect, body) is foreign


def test_no_value_is_no_seal() -> None:
    assert (seal.read(seal.SIGNED, None), seal.read(seal.SIGNED, "")) == ("", "")
