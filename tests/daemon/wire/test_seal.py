"""What a vendor wants back with a thought goes to that vendor only."""

from daemon.wire import seal


def test_a_vendors_own_value_is_sealed_with_its_name_and_comes_out_again() -> None:
    sealed = seal.read(seal.SIGNED, "c2ln")
    assert seal.value(sealed, seal.SIGNED) == "c2ln"
    assert seal.value(sealed, seal.ENCRYPTED) is None


def test_a_seal_that_a_client_carried_is_not_sealed_again() -> None:
    assert seal.read(seal.SIGNED, "openai:rs_1:abc") == "openai:rs_1:abc"


def test_no_value_is_no_seal() -> None:
    assert (seal.read(seal.SIGNED, None), seal.read(seal.SIGNED, "")) == ("", "")
