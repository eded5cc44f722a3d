"""A deterministic engine: it answers with the name of its weights, and refuses the adapters it is told to refuse."""

from collections.abc import AsyncGenerator, Callable

from daemon.core.errors import BadWeights
from daemon.core.generation import EngineEvent, Finished, Started, TextDelta
from daemon.core.records import ChatRequest, Usage
from daemon.engines.base import EngineState, EngineStatus, LoraFile


class ScriptedEngine:
    """`TokenEngine`. ``loaded`` lists what `load` was given; ``on_load`` runs inside it."""

    name = "embedded"

    def __init__(self) -> None:
        self.loaded: list[LoraFile] = []
        self.refused: set[str] = set()
        self.on_load: Callable[[], None] = lambda: None

    async def generate(
        self, request: ChatRequest, *, lora: LoraFile | None = None, background: bool = False
    ) -> AsyncGenerator[EngineEvent, None]:
        self._check(lora)
        yield Started(1, 0)
        yield TextDelta(self.weights(lora))
        yield Finished("stop", Usage(prompt=1, completion=1))

    async def load(self, lora: LoraFile) -> float:
        self.on_load()
        self._check(lora)
        self.loaded.append(lora)
        return 1.0

    async def count(self, request: ChatRequest) -> int:
        return 1

    def weights(self, lora: LoraFile | None = None) -> str:
        return lora.weights if lora else "model"

    def status(self) -> EngineStatus:
        return EngineStatus(name=self.name, kind="scripted", state=EngineState.READY)

    async def close(self) -> None:
        pass

    def _check(self, lora: LoraFile | None) -> None:
        if lora is not None and lora.sha256 in self.refused:
            raise BadWeights(f"{lora.sha256[:12]} holds NaN")
