"""The log: private, rotated, without tokens."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.server.log import start_logging


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


def test_a_token_is_masked_even_inside_an_exception(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    start_logging(path, secrets=("reef-secret",), foreground=False)
    try:
        raise ValueError("header was 'Bearer reef-secret'")
    except ValueError:
        logging.getLogger("reef").exception("refused reef-secret")
    text = path.read_text()
    assert "reef-secret" not in text
    assert "[token]" in text


def test_a_providers_key_that_an_exception_quotes_is_masked(tmp_path: Path) -> None:
    path, key = tmp_path / "daemon.log", "sk-ant-api03-" + "aB3" * 12
    start_logging(path, secrets=(), foreground=False)
    try:
        raise ValueError(f"cannot use {key}")
    except ValueError:
        logging.getLogger("reef").exception("%s failed: Bearer %s", "rec_1", "q7W3e9R2t5Y8u1I4o6P0")
    text = path.read_text()
    assert key not in text
    assert "q7W3e9R2" not in text
    assert "rec_1 failed" in text


def test_a_message_is_one_line_and_acts_on_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    start_logging(path, secrets=(), foreground=False)
    logging.getLogger("reef").info("said %s", "\x1b[2Jx\n2026-01-01T00:00:00.000Z INFO reef: forged\u202e\u2028 \u4eba")
    try:
        raise ValueError("\x1b]0;title\x07")
    except ValueError:
        logging.getLogger("reef").exception("it failed")
    lines = path.read_text().splitlines()
    assert lines[0].endswith(r"said \x1b[2Jx\n2026-01-01T00:00:00.000Z INFO reef: forged\u202e\u2028 " + "\u4eba")
    assert lines[1].endswith("it failed")
    assert lines[-1] == r"ValueError: \x1b]0;title\x07"


def test_the_log_is_private_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    start_logging(path, secrets=(), foreground=False)
    for _ in range(700):
        logging.getLogger("reef").info("x" * 50_000)
    files = list(tmp_path.iterdir())
    assert len(files) == 5
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    assert sum(file.stat().st_size for file in files) <= 25_000_000


def test_lines_carry_a_time_that_sorts(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    start_logging(path, secrets=(), foreground=False)
    logging.getLogger("reef").info("hello")
    assert path.read_text().partition(" ")[0].endswith("Z")


def test_what_is_said_a_thousand_times_a_second_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    start_logging(path, secrets=(), foreground=False)
    for _ in range(3):
        logging.getLogger("asyncio").error(
            "socket.accept() out of system resource\nsocket: x", exc_info=OSError(24, "x")
        )
        logging.getLogger("asyncio").error("another thing")
    lines = [line.partition("asyncio: ")[2] for line in path.read_text().splitlines()]
    said = "no file is left for another connection, which waits: ulimit -n is too low"
    assert lines == [said, *["another thing"] * 3]
