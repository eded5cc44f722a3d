"""Recipes as the daemon knows them: asked of a process of their own, never imported here.

A recipe is a person's code: importing it could print, hang or take the daemon down.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from daemon.core.client import told_error
from daemon.core.errors import RecipeError
from daemon.core.paths import Home
from daemon.learning.process import environment, module
from recipes.registry import entries, find

_PATIENCE_SECONDS: Final = 60.0
#: Of whoever fails to answer, this much of stderr is told.
_WORDS: Final = 300


class Catalogue:
    """``beside`` is the configuration's folder. Answers are kept: a recipe that changed counts from the next start."""

    def __init__(self, home: Home, beside: Path | None) -> None:
        self._environment = environment(home, beside)
        self._folder = home.jobs
        self._known: dict[str, list[dict[str, Any]]] = {}

    async def describe(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Name, target, summary, signals, acquisition, changes and config (every setting). Raises RecipeError."""
        find(name)  # a name that is none costs no process
        (told,) = await self._ask([(name, given)])
        if "error" in told:
            raise told_error(told)
        return told

    async def all(self, besides: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Every recipe that has a name, and ``besides``; one that cannot be loaded carries its ``error``."""
        names = dict.fromkeys([*(entry.name for entry in entries()), *besides])
        return await self._ask([(name, {}) for name in names])

    async def _ask(self, asked: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        key = json.dumps(asked, sort_keys=True, default=str)
        if key not in self._known:
            answers = await self._answers(key.encode(), len(asked))
            if any("error" in one for one in answers):
                return answers  # a person may be about to correct it
            self._known[key] = answers
        return list(self._known[key])

    async def _answers(self, question: bytes, count: int) -> list[dict[str, Any]]:
        process = await asyncio.create_subprocess_exec(
            *module("recipes.registry"),
            cwd=self._folder,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(question), _PATIENCE_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise RecipeError(f"a recipe has not loaded within {_PATIENCE_SECONDS:.0f} s") from None
        lines = out.splitlines()
        if process.returncode != 0 or len(lines) != count:
            words = err.decode(errors="replace").strip()[-_WORDS:]
            raise RecipeError(f"recipes cannot be asked: {words or f'exit code {process.returncode}'}")
        return [json.loads(line) for line in lines]
