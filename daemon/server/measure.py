"""``POST /reef/tasks/run``: what serves now, on a scenario's tasks, as the gate would ask it. Off the record.

A measurement for a person, not a judgement: it compares nothing and releases nothing. Answers one JSON line a task, in
the order in which they end.
"""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from daemon.core.errors import NotFound, ReefError
from daemon.core.learning import Task, TaskSet
from daemon.engines.base import LoraFile
from daemon.server import answers
from daemon.server.control import body, read, runtime
from daemon.server.identity import scenario_name
from daemon.server.runtime import Runtime
from recipes.base import Answer, Which
from recipes.gate.variant import Variant
from recipes.tasks import checks

#: As many as the gate asks for together.
_AT_ONCE: Final = 8


async def run(request: Request) -> Response:
    """Every gate and regression task: ``{task, set, prompt, passed, answer}``, or ``{task, …, error}``."""
    daemon, data = runtime(request), await body(request)
    given = data.get("scenario") or request.headers.get("x-reef-scenario")
    scenario = scenario_name(given if isinstance(given, str) else None)
    tasks = [task for task in await read(daemon.store.tasks, scenario) if task.set is not TaskSet.SEARCH]
    if not tasks:
        raise NotFound(f"{scenario} has no tasks", hint="reef tasks add --help")
    return StreamingResponse(_lines(daemon, scenario, tasks), media_type="application/x-ndjson")


async def _lines(daemon: Runtime, scenario: str, tasks: list[Task]) -> AsyncIterator[bytes]:
    seams = daemon.learning.seams
    variant = Variant((await read(seams.incumbent, scenario)).harness, Which.HEAD)
    lora = await read(seams.head_lora, scenario)
    like = await answers.like(daemon.store, scenario, daemon.heads.tip(scenario).routing)
    gate = asyncio.Semaphore(_AT_ONCE)
    # Of their own: a check may take half a minute, and the threads that all share are few.
    threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="reef-checks")

    async def one(task: Task) -> dict[str, Any]:
        async with gate:
            measured, answer = await _measured(daemon, variant, task, like=like, lora=lora)
            if answer is None:
                return measured
            checked = partial(checks.passes, task.check, answer, task.prompt)
            return measured | {"passed": await asyncio.get_running_loop().run_in_executor(threads, checked)}

    running = [asyncio.create_task(one(task)) for task in tasks]
    try:
        for ended in asyncio.as_completed(running):
            yield msgspec.json.encode(await ended) + b"\n"
    finally:
        for job in running:
            job.cancel()
        threads.shutdown(wait=False, cancel_futures=True)


async def _measured(
    daemon: Runtime, variant: Variant, task: Task, *, like: answers.As, lora: LoraFile | None
) -> tuple[dict[str, Any], Answer | None]:
    """The task's line, and the answer that is still to be checked; None where there is none."""
    said = {"task": task.id, "set": task.set, "prompt": task.prompt}
    messages = tuple((message.role, message.text) for message in variant.conversation(task))
    asked = answers.Asked(messages, Which.HEAD, task.max_tokens, 0.0, 0)
    try:
        answer = await answers.answer(daemon.router, daemon.config, asked, like=like, lora=lora)
    except ReefError as error:
        return said | {"passed": False, "answer": "", **error.envelope()}, None
    return said | {"answer": answer.text}, answer
