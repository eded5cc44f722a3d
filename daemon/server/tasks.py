"""Routes of tasks: ``/reef/tasks``. A task that could never be judged is refused here, by name, before it is kept."""

import asyncio
import difflib
from dataclasses import asdict
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import UsageError
from daemon.core.ids import new_id
from daemon.core.learning import Check, Task, TaskSet
from daemon.server.control import answer, body, read, runtime
from daemon.server.releases import scenario_of
from recipes.tasks import checks

_FIELDS: Final = ("prompt", "check", "set", "critical", "max_tokens")
_CHECKS: Final = ("form", "expression", "command")
_PROMPT_MOST: Final = 32_000
_TOKENS_MOST: Final = 8192
_MANY: Final = 1000
_PAGE: Final = 50


async def tasks(request: Request) -> Response:
    """Newest first; ``set`` narrows."""
    query = request.query_params
    limit = query.get("limit", str(_PAGE))
    if not (limit.isascii() and limit.isdecimal() and 0 < len(limit) < 7 and int(limit)):
        raise UsageError(f"limit={limit[:40]!r} is not a number from 1 on", hint="for example limit=50")
    items, cursor = await read(
        runtime(request).store.task_page,
        scenario_of(request),
        None if "set" not in query else task_set(query["set"]),
        limit=int(limit),
        before=query.get("before"),
    )
    return answer({"items": items, "next": cursor})


async def add(request: Request) -> Response:
    """One task, or ``{"tasks": […]}``: all of them or none. ``created`` is false for one that was there already."""
    data = await body(request)
    scenario = scenario_of(request)
    many = data.get("tasks")
    if many is None:
        new = [parse(data, scenario)]
    elif not isinstance(many, list) or not 0 < len(many) <= _MANY or len(data) != 1:
        raise UsageError(f"tasks is not a list of 1 to {_MANY} tasks, alone")
    else:
        new = [_numbered(number, item, scenario) for number, item in enumerate(many, 1)]
    kept = await asyncio.wrap_future(runtime(request).store.add_tasks(new))
    rows = [asdict(task) | {"created": created} for task, created in kept]
    return answer(rows[0] if many is None else {"items": rows, "next": None})


async def remove(request: Request) -> Response:
    removed = await asyncio.wrap_future(runtime(request).store.remove_task(request.path_params["id"]))
    return answer(removed)


def parse(data: object, scenario: str) -> Task:
    """Raises UsageError naming the field and its value."""
    if not isinstance(data, dict):
        raise UsageError(f"a task is an object, got {data!r:.60}", hint=f"with {', '.join(_FIELDS)}")
    _known(data, _FIELDS, "a task")
    prompt, critical, most = data.get("prompt"), data.get("critical", False), data.get("max_tokens", 256)
    if not isinstance(prompt, str) or not prompt.strip():
        raise UsageError(f"the prompt {prompt!r} says nothing" if "prompt" in data else "a task needs a prompt")
    if len(prompt) > _PROMPT_MOST:
        raise UsageError(f"the prompt has {len(prompt)} characters, the limit is {_PROMPT_MOST}")
    if not isinstance(critical, bool):
        raise UsageError(f"critical {critical!r} is neither true nor false")
    if not isinstance(most, int) or isinstance(most, bool) or not 0 < most <= _TOKENS_MOST:
        raise UsageError(f"max_tokens {most!r:.40} is not a number from 1 to {_TOKENS_MOST}")
    kind = task_set(data.get("set", TaskSet.GATE.value))
    if critical and kind is not TaskSet.REGRESSION:
        raise UsageError(
            f"critical is for regression tasks, this one is a {kind.value} task", hint="add --set regression"
        )
    return Task(new_id("tsk"), scenario, kind, prompt.strip(), _check(data.get("check")), critical, most)


def task_set(word: object) -> TaskSet:
    try:
        return TaskSet(str(word))
    except ValueError:
        raise UsageError(f"set {word!r:.40} is not one of {', '.join(TaskSet)}") from None


def _check(data: object) -> Check:
    if not isinstance(data, dict):
        raise UsageError("a task needs a check", hint="one of: form, expression, command")
    _known(data, _CHECKS, "a check")
    for name, value in data.items():
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{name} {value!r:.40} is not text")
    check = Check(**data)
    checks.validate(check)
    return check


def _known(data: dict[Any, Any], names: tuple[str, ...], what: str) -> None:
    for name in data:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            raise UsageError(
                f"unknown field {name!r}",
                hint=f"did you mean {near[0]!r}?" if near else f"{what} has {', '.join(names)}",
            )


def _numbered(number: int, data: object, scenario: str) -> Task:
    try:
        return parse(data, scenario)
    except UsageError as error:
        raise UsageError(f"task {number}: {error.message}; none was added", hint=error.hint) from None
