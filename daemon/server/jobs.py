"""Jobs over HTTP: what people do with them, what agents ask of recipes, and the routes that a job itself uses."""

import asyncio
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from daemon.core.errors import Conflict, NotFound, Unauthorised, UsageError
from daemon.core.ids import new_id
from daemon.core.learning import JobRow, JobState, Split
from daemon.engines.base import LoraFile
from daemon.learning.stream import Ask, split_of
from daemon.server import answers
from daemon.server.control import answer, body, page_limit, read, runtime
from daemon.server.identity import scenario_name
from daemon.server.incoming import ClientGone, until_gone
from daemon.server.runtime import Runtime
from daemon.store.instructions import NewInstruction
from daemon.store.jobs import Claim
from recipes.registry import entries

_TEXT_MOST = 4000
_REQUIRES_MOST = 8
_FIELD_MOST = 200
_LIST_MOST = 10_000


# -- for people -------------------------------------------------------------------------------------------


async def listed(request: Request) -> Response:
    query = request.query_params
    given = query.get("scenario") or request.headers.get("x-reef-scenario")
    items, cursor = await read(
        runtime(request).store.learning.jobs,
        scenario=scenario_name(given) if given else None,
        limit=page_limit(request),
        before=query.get("before"),
    )
    return answer({"items": items, "next": cursor})


async def shown(request: Request) -> Response:
    daemon, row = runtime(request), await _job(request)
    jobs = daemon.learning.jobs
    directory = jobs.directory(row.id)
    log, curves = await asyncio.gather(read(jobs.log, row.id), read(directory.curves))
    return answer(asdict(row) | {"log": log, "curves": curves, "directory": str(directory.root)})


async def start(request: Request) -> Response:
    """Run a recipe now; its name and settings are checked first."""
    daemon, data = runtime(request), await body(request)
    recipe, config = data.get("recipe"), data.get("config") or {}
    if not isinstance(recipe, str) or not recipe:
        raise UsageError(f"recipe {recipe!r} is not a recipe's name", hint="reef recipes list")
    if not isinstance(config, dict):
        raise UsageError(f"config {config!r} is not an object")
    scenario = _scenario(request, data)
    side = daemon.learning
    known = (await side.catalogue.describe(recipe, {}))["name"]
    settings = await side.scheduler.settings(known) | config
    await side.catalogue.describe(recipe, settings)
    return answer(await side.jobs.submit(scenario, known, settings), 202)


async def cancel(request: Request) -> Response:
    return answer(await runtime(request).learning.jobs.cancel(request.path_params["id"]))


async def recipes(request: Request) -> Response:
    daemon = runtime(request)
    configured = daemon.config.reef.get("recipe")
    return answer({"items": await daemon.learning.catalogue.all([str(configured)] if configured else [])})


async def train(request: Request) -> Response:
    """``POST /reef/train``: an instruction in words; on disk before the answer, and the same id twice is one.

    An agent chooses among the recipes that have a name: ``module:Class`` would run whatever it has put on a job's path.
    """
    daemon, data = runtime(request), await body(request)
    side = daemon.learning
    recipe = _word(data, "recipe")
    if recipe and not request.scope["reef.control"] and recipe not in _named(daemon):
        raise Unauthorised(f"recipe {recipe!r} needs the control token", hint="an agent may ask for one with a name")
    name = (await side.catalogue.describe(recipe, {}))["name"] if recipe else await side.scheduler.heeding()
    new = _instruction(data, _scenario(request, data), name)
    async with side.scheduler.turn:
        kept, _ = await asyncio.wrap_future(daemon.store.learning.instruct(new))
        if kept.job is not None:
            row: JobRow | None = await read(daemon.store.learning.job, kept.job)
        else:
            row = await side.scheduler.start(kept.scenario, name)
    return answer({"instruction": kept.id, "job": row})


def _named(daemon: Runtime) -> set[object]:
    return {*(entry.name for entry in entries()), daemon.config.reef.get("recipe")}


def _instruction(data: dict[str, Any], scenario: str, recipe: str) -> NewInstruction:
    text = data.get("text")
    if not isinstance(text, str) or not text.strip() or len(text) > _TEXT_MOST:
        raise UsageError(f"text {str(text)[:80]!r} is not an instruction", hint=f"1 to {_TEXT_MOST} characters")
    requires = data.get("requires") or []
    if not isinstance(requires, list) or len(requires) > _REQUIRES_MOST or not all(_is_word(r) for r in requires):
        raise UsageError(f"requires {requires!r} is not a list of at most {_REQUIRES_MOST} short texts")
    return NewInstruction(
        id=_word(data, "agent_record_id") or new_id("ins"),
        scenario=scenario,
        text=text,
        recipe=recipe,
        session=_word(data, "session"),
        release_id=_word(data, "release_id"),
        requires=tuple(requires),
    )


# -- for a job itself -------------------------------------------------------------------------------------


async def stream(request: Request) -> Response:
    """What the stream offers this job: ``?split=&signals=&after=&limit=`` shape its experience (limit 0: none)."""
    daemon, row = runtime(request), await _running(request)
    query, side = request.query_params, daemon.learning
    split = query.get("split", Split.TRAIN)
    if split not in tuple(Split):
        raise UsageError(f"split {split!r} is not one of {', '.join(Split)}")
    ask = Ask(
        Split(split), tuple(filter(None, query.get("signals", "").split(","))), _number(query.get("after", "0")),
        _number(query.get("limit", "1000")),
    )  # fmt: skip
    told = await side.catalogue.describe(row.recipe, row.config)
    head = await read(side.seams.head, row.scenario)
    return answer(await read(side.stream.offered, row, head, ask, told["config"]["max_staleness"]))


async def claim(request: Request) -> Response:
    daemon, row, data = runtime(request), await _running(request), await body(request)
    wanted = Claim(*(_texts(data, name) for name in ("records", "reports", "instructions")))
    await read(_check_split, daemon, wanted.records)
    claimed = await asyncio.wrap_future(daemon.store.learning.claim(row.id, wanted))
    return answer(claimed)


def _check_split(daemon: Runtime, receipts: tuple[str, ...]) -> None:
    for receipt in receipts:
        if split_of(daemon.store.record(receipt).session) is Split.GATE:
            raise UsageError(f"record {receipt!r} is of the gate's split", hint="claim what the stream offers")


async def answered(request: Request) -> Response:
    daemon, row = runtime(request), await _running(request)
    asked = answers.parse(await body(request))
    side = daemon.learning
    if row.id not in side.like:
        routing = daemon.heads.tip(row.scenario).routing
        side.like = {row.id: await answers.like(daemon.store, row.scenario, routing)}  # one job at a time
    like = side.like[row.id]
    lora = await _lora(daemon, row, asked.which)
    # A job that was stopped leaves up to eight of these behind, each minutes of the engine's time.
    work = answers.answer(daemon.router, daemon.config, asked, like=like, lora=lora)
    told = await until_gone(work, request.scope)
    if told is None:
        raise ClientGone
    return answer(told)


async def _lora(daemon: Runtime, row: JobRow, which: str) -> LoraFile | None:
    if which == "base":
        return None
    side = daemon.learning
    if which == "head":
        return await read(side.seams.head_lora, row.scenario)
    directory = side.jobs.directory(row.id)
    if directory.adapter not in side.checked:
        spec = await read(directory.spec)
        lora = await read(answers.lora_file, directory.adapter, None if spec is None else spec.model)
        await daemon.embedded.load(lora)
        side.checked = {directory.adapter: lora}  # one job at a time
    return side.checked[directory.adapter]


async def model(request: Request) -> Response:
    """The model in use, which a LoRA adapter has to fit."""
    await _running(request)
    active = await read(runtime(request).models.active)
    if active is None:
        raise NotFound("no model is in use whose weights could be trained", hint="reef models add default")
    return answer({"path": str(active.path), "sha256": active.sha256})


# -- parts of requests ------------------------------------------------------------------------------------


async def _job(request: Request) -> JobRow:
    return await read(runtime(request).store.learning.job, request.path_params["id"])


async def _running(request: Request) -> JobRow:
    row = await _job(request)
    if row.state is not JobState.RUNNING:
        raise Conflict(f"job {row.id} is {row.state}", hint=f"reef jobs show {row.id}")
    return row


def _scenario(request: Request, data: dict[str, Any]) -> str:
    given = _word(data, "scenario") or request.query_params.get("scenario") or request.headers.get("x-reef-scenario")
    return scenario_name(given)


def _word(data: dict[str, Any], name: str) -> str | None:
    value = data.get(name)
    if value is not None and not _is_word(value):
        raise UsageError(f"{name} {str(value)[:80]!r} is not a text of 1 to {_FIELD_MOST} characters")
    return value


def _is_word(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _FIELD_MOST


def _texts(data: dict[str, Any], name: str) -> tuple[str, ...]:
    values = data.get(name) or []
    if not isinstance(values, list) or len(values) > _LIST_MOST or not all(isinstance(v, str) for v in values):
        raise UsageError(f"{name} is not a list of at most {_LIST_MOST} ids")
    return tuple(values)


def _number(given: str) -> int:
    if not (given.isascii() and given.isdigit() and len(given) <= 18):
        raise UsageError(f"{given[:40]!r} is not a whole number")
    return int(given)
