"""A GGUF loaded by llama.cpp: weights, vocabulary and metadata. Many contexts can share one.

Everything here may be called from any thread once loaded (llama.cpp's vocabulary is constant); only `Context` decodes.
"""

import collections
import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Final

import llama_cpp as native

from daemon.core.errors import BadRequest, EngineUnavailable
from daemon.engines.llama.frames import WorkerSpec

_WARN, _ERROR, _CONT = 3, 4, 5  # ggml_log_level

#: Attributes of a token (llama.h, llama_token_attr). Text next to a special token is tokenized apart from it.
_SPECIAL: Final = native.LLAMA_TOKEN_ATTR_CONTROL | native.LLAMA_TOKEN_ATTR_USER_DEFINED
_CONTROL: Final = native.LLAMA_TOKEN_ATTR_CONTROL


class NativeLog:
    """llama.cpp's log: warnings and errors to stderr; the last errors kept to explain a failed load."""

    #: llama.cpp has one log for the process and keeps only the address of what it calls.
    _called: ClassVar[object] = None

    def __init__(self) -> None:
        self._last: collections.deque[str] = collections.deque(maxlen=4)
        self._level = 0
        callback = NativeLog._called = native.llama_log_callback(self._line)
        native.llama_log_set(callback, ctypes.c_void_p(0))

    def _line(self, level: int, text: bytes, _: object) -> None:
        if level != _CONT:
            self._level = level
        if self._level in (_WARN, _ERROR):
            line = text.decode(errors="replace")
            sys.stderr.write(line)
            if self._level == _ERROR and line.strip():
                self._last.append(line.strip())

    def clear(self) -> None:
        """Forget the errors so far."""
        self._last.clear()

    def reason(self) -> str:
        """The first of the last errors: llama.cpp logs the cause first, then what gave up because of it."""
        return self._last[0] if self._last else "llama.cpp gave no reason"


class Model:
    """One loaded GGUF. ``digest`` is its sha256: with it, everything that depends on the weights is keyed."""

    def __init__(self, spec: WorkerSpec, log: NativeLog, progress: Callable[[float], None]) -> None:
        """Loads; raises EngineUnavailable with llama.cpp's reason, BadRequest for a model that cannot chat."""
        self.digest = spec.sha256
        self.name = spec.name
        self.log = log
        #: llama.cpp keeps a set of the model's LoRA adapters, and guards it not: held while one is loaded or freed, and
        #: while a context is made or decodes for the first time, which sizes its graph by them.
        self.adapters = threading.Lock()
        params = native.llama_model_default_params()
        params.use_extra_bufts = not spec.plain

        def went_on(done: float, _: object) -> bool:
            progress(done)
            return True  # False would give the load up

        report = native.llama_progress_callback(went_on)
        params.progress_callback = report
        self.handle: Any = native.llama_model_load_from_file(spec.path.encode(), params)
        if not self.handle:
            raise EngineUnavailable(
                f"the model {spec.name!r} cannot be loaded: {log.reason()}",
                hint=f"reef models remove {spec.name}, then add it again",
            )
        self.vocab = Vocab(native.llama_model_get_vocab(self.handle))
        self.trained_context = int(native.llama_model_n_ctx_train(self.handle))
        #: A recurrent state cannot be cut back to an earlier position, nor shared up to one.
        self.can_cut = not (native.llama_model_is_recurrent(self.handle) or native.llama_model_is_hybrid(self.handle))

    def template(self, name: bytes | None = None) -> str | None:
        """The chat template in the file, or its variant ``name``."""
        raw: bytes | None = native.llama_model_chat_template(self.handle, name)
        return raw.decode(errors="replace") if raw else None

    def chat_template(self) -> str:
        source = self.template()
        if not source:
            raise BadRequest(
                f"{self.name!r} is a base model: its file has no chat template, so it cannot answer a conversation",
                hint="reef models add default, or another model whose name says instruct, chat or it",
            )
        return source

    def metadata(self, key: str) -> str | None:
        buffer = ctypes.create_string_buffer(256)
        size = native.llama_model_meta_val_str(self.handle, key.encode(), buffer, len(buffer))
        return buffer.value.decode(errors="replace") if size >= 0 else None

    def close(self) -> None:
        native.llama_model_free(self.handle)


class Vocab:
    """Text to tokens and back. Token ids are ints, text is UTF-8 bytes."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.size = int(native.llama_vocab_n_tokens(handle))
        self._pieces: dict[int, bytes] = {}
        self._attributes: dict[int, int] = {}
        self._buffer = ctypes.create_string_buffer(1024)
        self.bos = self._text_of(native.llama_vocab_bos(handle))
        self.eos = self._text_of(native.llama_vocab_eos(handle))
        self.adds_bos = bool(native.llama_vocab_get_add_bos(handle)) and bool(self.bos)

    def _text_of(self, token: int) -> str:
        return "" if token < 0 else self.piece(token).decode(errors="replace")

    def tokenize(self, text: bytes) -> list[int]:
        """Special tokens in ``text`` become themselves; nothing is added in front (`start` does that)."""
        if not text:
            return []
        room = len(text) + 8
        tokens = (native.llama_token * room)()
        count = native.llama_tokenize(self.handle, text, len(text), tokens, room, False, True)
        if count < 0:
            tokens = (native.llama_token * -count)()
            count = native.llama_tokenize(self.handle, text, len(text), tokens, -count, False, True)
        return list(tokens[:count])

    def start(self, text: str) -> bytes:
        """A whole prompt's text with exactly one beginning-of-sequence, where the model wants one."""
        if self.adds_bos and not text.startswith(self.bos):
            text = self.bos + text
        return text.encode("utf-8", "replace")

    def piece(self, token: int) -> bytes:
        """The bytes a token stands for, special tokens included."""
        known = self._pieces.get(token)
        if known is None:
            buffer = self._buffer
            size = native.llama_token_to_piece(self.handle, token, buffer, len(buffer), 0, True)
            if size < 0:
                buffer = ctypes.create_string_buffer(-size)
                size = native.llama_token_to_piece(self.handle, token, buffer, len(buffer), 0, True)
            known = self._pieces[token] = buffer.raw[:size]
        return known

    def is_special(self, token: int) -> bool:
        """Control and added tokens: the text on either side is tokenized on its own."""
        return bool(self._attribute(token) & _SPECIAL)

    def is_control(self, token: int) -> bool:
        return bool(self._attribute(token) & _CONTROL)

    def _attribute(self, token: int) -> int:
        known = self._attributes.get(token)
        if known is None:
            known = self._attributes[token] = int(native.llama_vocab_get_attr(self.handle, token))
        return known

    def is_end(self, token: int) -> bool:
        """End of generation: of the turn or of the text."""
        return bool(native.llama_vocab_is_eog(self.handle, token))

    def widest(self) -> int:
        """Bytes of the longest token: a text of N bytes has at least N / widest tokens."""
        return max(len(native.llama_vocab_get_text(self.handle, token)) for token in range(self.size))
