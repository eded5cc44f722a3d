"""`reef config show · path · validate`: starts nothing; a running daemon is asked what it was started with."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from daemon.core import keys
from daemon.core.client import Client
from daemon.core.config import Config, load
from daemon.core.errors import ReefError, Unreachable
from daemon.core.paths import Home, home
from reef_cli import diagnostics, output
from reef_cli.parameters import AsJson, Help


def show(*, as_json: AsJson = False) -> None:
    """The running daemon's configuration; without one, what the next start would read."""
    values, source = _in_force(home())
    diagnostics.say(f"# {source}")
    if as_json:
        output.json(values)
        return
    import yaml

    output.raw(output.visible(yaml.safe_dump(values, sort_keys=False, allow_unicode=True)))


def path(*, as_json: AsJson = False) -> None:
    """The file need not exist: without it every value is the default."""
    place = home().config
    output.told({"path": str(place), "exists": place.exists()}, str(place), as_json)


def validate(
    file: Annotated[Path | None, Help("The file; by default the one that `reef config path` prints.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Exit code 2 when it cannot be used; the message names the key and the value. Keys that are missing are said."""
    chosen = file if file is not None else home().config
    there = file is not None or chosen.exists()
    missing = dict(_missing_keys(load(chosen))) if there else {}
    for engine, why in missing.items():
        diagnostics.say(f"engines.{engine}: {why}")
    state = "is valid" if there else "is not there: the defaults are in force"
    output.told(
        {"path": str(chosen), "valid": True, "missing_keys": sorted(missing)},
        f"{output.visible(str(chosen))} {state}",
        as_json,
    )


def _missing_keys(config: Config) -> Iterator[tuple[str, str]]:
    for name, remote in config.engines.items():
        try:
            if remote.key not in ("agent", "none"):
                keys.read(remote.key)
        except ReefError as error:
            yield name, f"{error.message} ({error.hint})"


def _in_force(place: Home) -> tuple[dict[str, Any], str]:
    try:
        client = Client(place.socket)
        file = client.get("/reef/status")["config_path"]
        return client.get("/reef/config"), f"the running daemon's, from {file or 'the defaults'}"
    except Unreachable:
        config = load(place.config) if place.config.exists() else Config()
        return asdict(config), str(place.config) if place.config.exists() else "defaults; there is no file"
