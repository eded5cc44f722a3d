"""Models: the engines that answer and how they do, the files that the engine inside can answer with; using another."""

from collections.abc import Mapping, Sequence
from typing import Any

from daemon.core.errors import NotFound
from reef_cli import output
from reef_cli.tui.desk import Desk
from reef_cli.tui.keys import Place
from reef_cli.tui.messages import Event
from reef_cli.tui.screens.panel import Panel
from reef_cli.tui.screens.reading import Reading, hanging
from reef_cli.tui.screens.work import off_loop
from reef_cli.tui.text import inert, number
from reef_cli.tui.widgets.rows import Column
from reef_cli.tui.window import Row

_NAMES = {"memory_mb": "memory", "bytes": "size", "loras": "LoRA adapters"}
_STYLES = {"failed": "error", "missing": "warning", "off": "dim"}
_STATES = {
    "ready": "* ready",
    "off": ". asleep",
    "loading": "~ loading",
    "failed": "! failed",
    "missing": "? missing",
}


class _Using(Panel):
    """Answering with the model that is selected or read."""

    def chosen(self) -> tuple[str, Mapping[str, Any]] | None:
        """What kind it is (engine, model or adding) and what is known of it."""
        raise NotImplementedError

    def blocked(self, id: str) -> str | None:
        why = super().blocked(id)
        if why is not None or id not in ("facts", "use"):
            return why
        chosen = self.chosen()
        if chosen is None:
            return "no model is selected"
        kind, told = chosen
        if kind == "adding":
            return f"{told['source']} is still being added"
        if id == "use" and kind != "model":
            return f"{told['name']} is an engine: select a model"
        if id == "use" and told["active"]:
            return f"{told['name']} answers already"
        return None

    def do_use(self) -> None:
        chosen = self.chosen()
        assert chosen is not None  # `blocked` asks first
        name = str(chosen[1]["name"])

        def work() -> str:
            self.desk.client.post("/reef/models/use", {"name": name})
            return f"{name} answers from now on"

        self.confirm(f"Answer with {name}? Requests in flight finish on the old one.", work)


class Models(_Using):
    place = Place.MODELS
    columns = (
        Column("name", 18),
        Column("state", 23),
        Column("tok/s", 6, right=True, least=50),
        Column("cached", 6, right=True, least=60),
        Column("memory", 8, right=True, least=66),
        Column("context", 7, right=True, least=90),
        Column("weights"),
    )
    empty = "no engine and no model yet: reef models add default"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._engines: Sequence[Mapping[str, Any]] = ()
        self._models: Mapping[str, Any] = {"items": []}

    async def load(self) -> None:
        self._engines, self._models = await off_loop(self._asked)
        self._draw()

    def _asked(self) -> tuple[Sequence[Mapping[str, Any]], Mapping[str, Any]]:
        client = self.desk.client
        return client.get("/reef/status")["engines"], client.get("/reef/models")

    def _draw(self) -> None:
        rows = [_engine_row(engine) for engine in self._engines]
        rows += [_adding_row(adding) for adding in self._models.get("adding", [])]
        rows += [_model_row(model) for model in self._models["items"]]
        if rows and not self._models["items"]:
            rows.append(Row("none", ("no model yet", "reef models add default", *[""] * 5), "dim"))
        self.list.all(rows)
        self.foot.refresh()

    def heard(self, events: Sequence[Event]) -> None:
        """The engines' state is in the event itself."""
        engines = [event.data for event in events if event.name == "engine"]
        if engines:
            self._engines = engines[-1]
            self._draw()
        if any(event.name == "model" for event in events):
            self.reload.ask()

    def chosen(self) -> tuple[str, Mapping[str, Any]] | None:
        row = self.list.selected
        return None if row is None or row.data is None else (row.id.partition("/")[0], row.data)

    def copied(self, row: Row) -> str:
        return row.cells[0]

    def do_facts(self) -> None:
        chosen = self.chosen()
        assert chosen is not None  # `blocked` asks first
        self.app.push_screen(Facts(self.desk, *chosen))


class Facts(Reading, _Using):
    """All that is known of one engine or model."""

    place = Place.MODEL
    empty = "…"

    def __init__(self, desk: Desk, kind: str, told: Mapping[str, Any]) -> None:
        super().__init__(desk)
        self._kind = kind
        self._about = told

    async def load(self) -> None:
        path, field = ("/reef/status", "engines") if self._kind == "engine" else ("/reef/models", "items")
        known = (await off_loop(self.desk.client.get, path))[field]
        self._take(known)

    def _take(self, known: Sequence[Mapping[str, Any]]) -> None:
        found = next((one for one in known if one["name"] == self._about["name"]), None)
        if found is None:
            raise NotFound(f"{self._about['name']} is gone", hint=f"{self.desk.key('back')}: back")
        self._about = found
        self.draw()
        self.foot.refresh()

    def lines(self, width: int) -> Sequence[Row]:
        rows: list[Row] = []
        for name, value in self._about.items():
            label = _NAMES.get(name, name).replace("_", " ")
            rows += hanging(name, f"{label:<18}", _fact(name, value), width)
        return rows

    def heard(self, events: Sequence[Event]) -> None:
        engines = [event.data for event in events if event.name == "engine"]
        if engines and self._kind == "engine":
            self._take(engines[-1])
        if any(event.name == "model" for event in events):
            self.reload.ask()

    def chosen(self) -> tuple[str, Mapping[str, Any]]:
        return self._kind, self._about


def _engine_row(engine: Mapping[str, Any]) -> Row:
    state = str(engine["state"])
    words = _STATES.get(state, state)
    if state == "loading" and engine.get("progress") is not None:
        words = f"{words} {engine['progress']:.0%}"
    cells = (
        inert(engine["name"]),
        words,
        _speed(engine.get("tokens_per_second")),
        _share(engine.get("cache_hit")),
        _megabytes(engine.get("memory_mb")),
        "-" if engine.get("context") is None else number(engine["context"]),
        inert(_short(engine.get("weights")) if engine.get("weights") else str(engine.get("model") or "-")),
    )
    return Row(f"engine/{engine['name']}", cells, _STYLES.get(state, "bold"), data=engine)


def _model_row(model: Mapping[str, Any]) -> Row:
    state = "* answers, loaded" if model["active"] and model["loaded"] else "* answers" if model["active"] else "there"
    cells = (
        inert(model["name"]), state, "", "", output.size(model["bytes"]), "", inert(_short(model["sha256"])),
    )  # fmt: skip
    return Row(f"model/{model['name']}", cells, "bold" if model["active"] else "", data=model)


def _adding_row(adding: Mapping[str, Any]) -> Row:
    done, total = adding["done"], adding["total"]
    share = f" {min(done / total, 1):.0%}" if total else ""
    size = output.size(total) if total else "-"
    cells = (inert(adding["source"]), f"~ {inert(adding['phase'])}{share}", "", "", size, "", "")
    return Row(f"adding/{adding['source']}", cells, "bold", data=adding)


def _speed(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _megabytes(value: int | None) -> str:
    return "-" if value is None else output.size(value * 1e6)


def _short(weights: str | None) -> str:
    """Of each digest as much as tells two files apart."""
    return "+".join(digest[:8] for digest in (weights or "-").split("+"))


def _fact(name: str, value: object) -> str:
    if value is None or value == "":
        return "-"
    if name == "memory_mb" and isinstance(value, int):
        return output.size(value * 1e6)
    if name == "bytes" and isinstance(value, int):
        return f"{output.size(value)} ({value} bytes)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
