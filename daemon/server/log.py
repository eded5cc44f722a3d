"""The daemon's log: one rotating private file, a message a line, and no secret in it.

Messages are ours; request bodies and headers are never logged. Tokens and keys are masked even so, since an exception's
text may quote what it choked on; and what could act on a terminal, or pass for another line, is spelled out.
"""

import logging
import logging.handlers
import math
import os
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from secrets import token_bytes
from typing import Any

from daemon.core.redact import Redactor

_BYTES = 5_000_000
_FILES = 5
_OFTEN = "socket.accept() out of system resource"
_PAUSE_SECONDS = 60.0


class _PrivateFile(logging.handlers.RotatingFileHandler):
    def _open(self) -> Any:
        handle = os.open(self.baseFilename, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return os.fdopen(handle, "a", encoding="utf-8")


class _Masked(logging.Formatter):
    converter = staticmethod(time.gmtime)

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        self._secrets = re.compile("|".join(map(re.escape, secrets)) or r"(?!)")
        self._redactor = Redactor(token_bytes(32))

    def format(self, record: logging.LogRecord) -> str:
        text = self._secrets.sub("[token]", _inert(super().format(record), keep="\n\t"))
        return self._redactor.redact(text.encode("utf-8", "replace"))[0].decode()

    def formatMessage(self, record: logging.LogRecord) -> str:
        return _inert(super().formatMessage(record))


def _inert(text: str, keep: str = "") -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else ascii(char)[1:-1] for char in text)


def _is_news(record: logging.LogRecord) -> bool:
    # A broken upstream is passed on by breaking the client's connection; uvicorn reports that as an application's
    # mistake.
    return "returned without completing response" not in record.getMessage()


class _NowAndThen(logging.Filter):
    """What asyncio says of each connection that it cannot take, hundreds of times a second: once a minute, a line."""

    def __init__(self) -> None:
        super().__init__()
        self._said = -math.inf

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.getMessage().startswith(_OFTEN):
            return True
        now = time.monotonic()
        if now - self._said < _PAUSE_SECONDS:
            return False
        self._said = now
        record.msg, record.args = "no file is left for another connection, which waits: ulimit -n is too low", ()
        record.exc_info = record.exc_text = None
        return True


def start_logging(path: Path, *, secrets: Iterable[str], foreground: bool) -> None:
    """Send everything to ``path`` (5 files of 5 MB), and to stderr too when a person is watching."""
    handlers: list[logging.Handler] = [_PrivateFile(path, maxBytes=_BYTES, backupCount=_FILES - 1)]
    if foreground:
        handlers.append(logging.StreamHandler(sys.stderr))
    formatter = _Masked(secrets)
    for handler in handlers:
        handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=handlers, force=True)
    logging.getLogger("asyncio").addFilter(_NowAndThen())
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.captureWarnings(True)
