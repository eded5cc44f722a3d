"""The life of the embedded engine's process: loading, dying, being replaced, giving memory back."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from daemon.core.config import EmbeddedConfig
from daemon.core.errors import BadRequest, BrokeOff, EngineError, EngineUnavailable
from daemon.core.generation import Started, TextDelta
from daemon.engines.base import EngineState, ModelFile
from daemon.engines.llama_cpp import LlamaCpp
from tests.conftest import ROOT
from tests.daemon.engines.asking import DEADLINE, Answer, ask, collect, model_file, new_engine, until
from tests.fakes import gguf

pytestmark = pytest.mark.engine
COVERS = ("daemon/engines/llama/supply.py",)


@contextlib.asynccontextmanager
async def engine_of(path: Path, log: Path, **config: Any):  # type: ignore[no-untyped-def]  # an async context of LlamaCpp
    engine = new_engine(path, log, context=512, **config)
    try:
        yield engine
    finally:
        await engine.close()


def worker_pids(parent: int | None = None) -> list[int]:
    """Engine processes that are children of ``parent`` (this process): alive, or dead and not reaped."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            is_worker = b"daemon.engines.llama.worker" in (process / "cmdline").read_bytes() or fields[0] == "Z"
            if is_worker and int(fields[1]) == (parent or os.getpid()):
                found.append(int(process.name))
    return found


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


async def test_nothing_runs_before_the_first_request(model_path: Path, tmp_path: Path) -> None:
    async with engine_of(model_path, tmp_path / "log") as engine:
        assert (engine.status().state, engine.weights()) == (EngineState.OFF, None)
        assert worker_pids() == []


async def test_loading_is_visible_and_serves_all_who_wait(model_path: Path, tmp_path: Path) -> None:
    """BUGS B037."""
    seen: list[tuple[EngineState, float | None]] = []
    file = model_file(model_path)
    engine = LlamaCpp(
        model=lambda: file,
        config=EmbeddedConfig(context=512, threads=1),
        log=tmp_path / "log",
        on_change=lambda: seen.append((engine.status().state, engine.status().progress)),
    )
    try:
        answers = await asyncio.gather(*(collect(engine, ask(f"Say {n}", tokens=1)) for n in range(4)))
        assert all(answer.finished.usage.completion == 1 for answer in answers)
        states = [state for state, _ in seen]
        assert states[0] is EngineState.LOADING
        assert states[-1] is EngineState.READY
        assert any(progress for _, progress in seen)
        assert len(worker_pids()) == 1
    finally:
        await engine.close()


async def test_a_request_in_the_moment_that_a_model_becomes_ready_is_answered(model_path: Path, tmp_path: Path) -> None:
    """BUGS B127: mostlygeek/llama-swap#635: the first one right after a swap got an empty 400."""
    link = tmp_path / "other.gguf"
    link.symlink_to(model_path)
    chosen = [model_file(model_path)]
    asked: list[asyncio.Task[Answer]] = []

    def ready() -> None:
        if engine.status().state is EngineState.READY and len(asked) < len(chosen):
            asked.append(asyncio.create_task(collect(engine, ask("Hi", tokens=1))))

    engine = LlamaCpp(
        model=lambda: chosen[-1],
        config=EmbeddedConfig(context=512, threads=1),
        log=tmp_path / "log",
        on_change=ready,
    )
    try:
        await engine.warm()
        await asked[0]
        chosen.append(model_file(link, sha256="6b" * 32, name="other"))
        await engine.warm()
        await until(lambda: len(asked) == 2)
        assert [(await one).span.weights for one in asked] == ["5a" * 32, "6b" * 32]
    finally:
        await engine.close()


async def test_close_leaves_no_process_and_refuses_what_comes(model_path: Path, tmp_path: Path) -> None:
    engine = new_engine(model_path, tmp_path / "log", context=512)
    await engine.warm()
    [pid] = worker_pids()
    await engine.close()
    assert gone(pid)
    assert worker_pids() == []
    with pytest.raises(EngineUnavailable, match="shutting down"):
        await collect(engine, ask("Hi"))


async def test_close_while_loading_leaves_no_process(model_path: Path, tmp_path: Path) -> None:
    engine = new_engine(model_path, tmp_path / "log", context=512)
    waiting = asyncio.create_task(collect(engine, ask("Hi")))
    await until(lambda: len(worker_pids()) == 1)
    await engine.close()
    assert worker_pids() == []
    with pytest.raises(EngineUnavailable, match="shutting down"):
        await waiting


async def test_who_leaves_while_it_loads_does_not_stop_the_load(model_path: Path, tmp_path: Path) -> None:
    async with engine_of(model_path, tmp_path / "log") as engine:
        impatient = asyncio.create_task(collect(engine, ask("Hi")))
        await until(lambda: engine.status().state is EngineState.LOADING)
        impatient.cancel()
        await until(lambda: engine.status().state is EngineState.READY)
        assert engine.status().waiting == 0


async def test_a_killed_worker_fails_what_it_answered_and_the_next_request_works(
    model_path: Path, tmp_path: Path
) -> None:
    async with engine_of(model_path, tmp_path / "log") as engine:
        generator = engine.generate(ask("Tell me a long story.", tokens=400))
        async for event in generator:
            if isinstance(event, TextDelta):
                break
        [pid] = worker_pids()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(EngineError, match="SIGKILL") as failed:
            async for _ in generator:
                pass
        assert isinstance(failed.value, BrokeOff)
        assert (await collect(engine, ask("Hi", tokens=1))).finished.usage.completion == 1
        assert engine.status().restarts == 1
        assert (engine.status().running, engine.status().waiting) == (0, 0)


async def test_requests_that_have_seen_nothing_survive_a_crash(model_path: Path, tmp_path: Path) -> None:
    async with engine_of(model_path, tmp_path / "log", parallel=1) as engine:
        first = engine.generate(ask("Tell me a long story.", tokens=400))
        assert isinstance(await anext(first), Started)
        behind = asyncio.create_task(collect(engine, ask("Hi", tokens=1)))
        await until(lambda: engine.status().waiting == 1)
        await asyncio.sleep(0)  # let it reach the worker
        os.kill(worker_pids()[0], signal.SIGSEGV)
        assert (await behind).finished.usage.completion == 1
        with pytest.raises(EngineError, match="SIGSEGV"):
            async for _ in first:
                pass


async def test_a_worker_that_ignores_sigterm_and_hangs_is_killed(model_path: Path, tmp_path: Path) -> None:
    """BUGS B126."""
    engine = new_engine(model_path, tmp_path / "log", context=512)
    await engine.warm()
    [pid] = worker_pids()
    os.kill(pid, signal.SIGSTOP)  # reads nothing, handles no signal but SIGKILL
    async with asyncio.timeout(DEADLINE):
        await engine.close()
    assert gone(pid)


async def test_the_worker_dies_with_its_daemon_even_inside_a_native_call(model_path: Path, tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
from pathlib import Path
from typing import Any
from tests.daemon.engines.asking import ask, new_engine
async def main():
    engine = new_engine(Path({str(model_path)!r}), Path({str(tmp_path / "log")!r}), context=2048)
    async for event in engine.generate(ask("word " * 1500)):
        print("started", flush=True)
asyncio.run(main())
"""
    daemon = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert daemon.stdout is not None
        assert await asyncio.to_thread(daemon.stdout.readline) == b"started\n"  # it now reads 1500 tokens at once
        [pid] = worker_pids(daemon.pid)
        daemon.kill()
        await until(lambda: gone(pid))
    finally:
        daemon.kill()
        daemon.wait()
        daemon.stdout.close()  # type: ignore[union-attr]  # a pipe was asked for


async def test_an_idle_model_gives_its_memory_back(model_path: Path, tmp_path: Path) -> None:
    async with engine_of(model_path, tmp_path / "log", idle_unload_seconds=0.2) as engine:
        assert (await collect(engine, ask("Hi", tokens=1))).finished.usage.completion == 1
        await until(lambda: engine.status().state is EngineState.OFF and worker_pids() == [])
        assert engine.status().memory_mb is None
        assert engine.weights() == "5a" * 32
        assert (await collect(engine, ask("Hi", tokens=1))).finished.usage.completion == 1
        assert engine.status().restarts == 0


async def test_a_long_request_is_not_idle(model_path: Path, tmp_path: Path) -> None:
    async with engine_of(model_path, tmp_path / "log", idle_unload_seconds=0.05) as engine:
        answer = await collect(engine, ask("Tell me a long story.", tokens=30))
        assert answer.finished.usage.completion > 1
        assert engine.status().restarts == 0


async def test_another_model_is_served_once_it_is_chosen(model_path: Path, tmp_path: Path) -> None:
    link = tmp_path / "other.gguf"
    link.symlink_to(model_path)
    chosen: list[ModelFile] = [model_file(model_path)]
    engine = LlamaCpp(model=lambda: chosen[-1], config=EmbeddedConfig(context=512, threads=1), log=tmp_path / "log")
    try:
        running = engine.generate(ask("Tell me a long story.", tokens=25))
        await anext(running)
        chosen.append(model_file(link, sha256="6b" * 32, name="other"))
        answer = await collect(engine, ask("Hi", tokens=1))
        assert answer.span.weights == engine.weights() == "6b" * 32
        last = [event async for event in running][-1]
        assert last.span.weights == "5a" * 32  # type: ignore[union-attr]  # Finished
        await until(lambda: len(worker_pids()) == 1)
        assert engine.status().model == "other"
        assert engine.status().restarts == 0
    finally:
        await engine.close()


async def test_a_load_that_never_ends_is_left_for_another_model(model_path: Path, tmp_path: Path) -> None:
    link = tmp_path / "other.gguf"
    link.symlink_to(model_path)
    chosen: list[ModelFile] = [model_file(model_path)]
    engine = LlamaCpp(model=lambda: chosen[-1], config=EmbeddedConfig(context=512, threads=1), log=tmp_path / "log")
    try:
        waiting = asyncio.create_task(collect(engine, ask("Hi", tokens=1)))
        await until(lambda: len(worker_pids()) == 1)
        [stuck] = worker_pids()
        os.kill(stuck, signal.SIGSTOP)  # it takes no SIGTERM (mostlygeek/llama-swap#38)
        chosen.append(model_file(link, sha256="6b" * 32, name="other"))
        answer = await collect(engine, ask("Hi", tokens=1))
        assert answer.span.weights == "6b" * 32
        await until(lambda: gone(stuck))
        with pytest.raises(EngineUnavailable, match="changed while it loaded"):
            await waiting
    finally:
        await engine.close()


async def test_a_broken_file_fails_with_its_reason_and_is_tried_again(model_path: Path, tmp_path: Path) -> None:
    """BUGS B037."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(model_path.read_bytes()[:5_000_000])
    async with engine_of(broken, tmp_path / "log") as engine:
        with pytest.raises(EngineUnavailable, match="cannot be loaded") as failed:
            await collect(engine, ask("Hi"))
        assert failed.value.hint is not None
        assert engine.status().state is EngineState.FAILED
        assert "cannot be loaded" in (engine.status().detail or "")
        broken.write_bytes(model_path.read_bytes())
        assert (await collect(engine, ask("Hi", tokens=1))).finished.usage.completion == 1
        assert engine.status().state is EngineState.READY


async def test_a_file_that_is_no_model_fails_clearly(tmp_path: Path) -> None:
    for content in (b"", b"no model at all", gguf.make()):
        path = tmp_path / "x.gguf"
        path.write_bytes(content)
        async with engine_of(path, tmp_path / "log") as engine:
            with pytest.raises(EngineUnavailable, match="smollm2"):
                await collect(engine, ask("Hi"))
            assert worker_pids() == []


async def test_a_model_without_a_chat_template_is_called_a_base_model(model_path: Path, tmp_path: Path) -> None:
    base = tmp_path / "base.gguf"
    base.write_bytes(model_path.read_bytes().replace(b"tokenizer.chat_template", b"tokenizer.chat_tem_late", 1))
    async with engine_of(base, tmp_path / "log") as engine:
        with pytest.raises(BadRequest, match="base model"):
            await collect(engine, ask("Hi"))
        assert engine.status().state is EngineState.FAILED


async def test_a_missing_file_is_named(tmp_path: Path, model_path: Path) -> None:
    file = model_file(model_path)
    missing = ModelFile("lost", tmp_path / "lost.gguf", file.bytes, file.sha256, "", "")
    engine = LlamaCpp(model=lambda: missing, config=EmbeddedConfig(), log=tmp_path / "log")
    with pytest.raises(EngineUnavailable, match="lost"):
        await collect(engine, ask("Hi"))
    await engine.close()


async def test_no_model_chosen_is_missing(tmp_path: Path) -> None:
    engine = LlamaCpp(model=lambda: None, config=EmbeddedConfig(), log=tmp_path / "log")
    with pytest.raises(EngineUnavailable) as refused:
        await collect(engine, ask("Hi"))
    assert refused.value.hint == "reef models add default"
    assert (engine.status().state, engine.status().model) == (EngineState.MISSING, None)
    await engine.close()


async def test_not_installed_is_missing_with_a_hint(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)  # how Python spells "not installed"
    engine = new_engine(model_path, tmp_path / "log")
    with pytest.raises(EngineUnavailable, match="not installed") as refused:
        await collect(engine, ask("Hi"))
    assert "install" in (refused.value.hint or "")
    assert engine.status().state is EngineState.MISSING
    await engine.close()


async def test_the_log_is_private_and_holds_no_prompt(model_path: Path, tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    async with engine_of(model_path, log) as engine:
        await collect(engine, ask("A secret sentence.", tokens=1))
    assert log.stat().st_mode & 0o777 == 0o600
    assert "secret" not in log.read_text()


async def test_a_folder_called_daemon_where_it_was_started_is_not_imported(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "daemon").mkdir()
    (tmp_path / "daemon" / "__init__.py").write_text("raise SystemExit('the wrong package')")
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    async with engine_of(model_path, tmp_path / "log") as engine:
        assert (await collect(engine, ask("Hi", tokens=1))).finished.usage.completion == 1
