"""The tree of errors: stable words for programs, codes for shells."""

from daemon.core import errors
from daemon.core.errors import ContextOverflow, ExitCode, ReefError, UsageError


def tree(cls: type[ReefError] = ReefError) -> list[type[ReefError]]:
    return [cls, *(found for child in cls.__subclasses__() for found in tree(child))]


def test_every_error_has_its_own_word() -> None:
    kinds = [cls.kind for cls in tree()]
    assert len(set(kinds)) == len(kinds)


def test_every_error_fits_http_and_a_shell() -> None:
    for cls in tree():
        assert 400 <= cls.status <= 599
        assert cls.exit_code is not ExitCode.OK


def test_exit_codes_are_what_scripts_know() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "OK": 0, "FAILED": 1, "USAGE": 2, "UNREACHABLE": 3, "UNAUTHORISED": 4, "NOT_FOUND": 5, "STALE": 6, "GATE": 7,
        "INTERRUPTED": 130,
    }  # fmt: skip


def test_the_envelope_is_the_same_on_every_edge() -> None:
    error = UsageError("limit -1 is not a number", hint="reef traces list -n 50")
    assert error.envelope() == {
        "error": {"kind": "usage", "message": "limit -1 is not a number", "hint": "reef traces list -n 50"}
    }
    assert str(error) == "limit -1 is not a number"


def test_an_overflow_says_both_numbers() -> None:
    error = ContextOverflow(9000, 8192)
    assert (error.tokens, error.limit, error.status) == (9000, 8192, 400)
    assert "9000" in error.message
    assert "8192" in error.message


def test_the_published_protocol_keeps_its_codes() -> None:
    assert (errors.UnknownReference.status, errors.Conflict.status, errors.NotFound.status) == (400, 409, 404)
