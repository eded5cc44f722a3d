"""`reef run`: a program that only knows the usual variables, and what Reef knows of it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.core.errors import ExitCode
from daemon.core.paths import Home
from tests.fakes.daemon import REPOSITORY, RunningDaemon, running_daemon
from tests.fakes.provider import Provider, Turn, running_provider
from tests.reef_cli.conftest import Reef

OPENAI = """
import sys
from openai import OpenAI
said = OpenAI().chat.completions.create(model="default", messages=[{"role": "user", "content": sys.argv[1]}])
print(said.choices[0].message.content)
sys.exit(7)
"""
ANTHROPIC = """
import sys
from anthropic import Anthropic
messages = [{"role": "user", "content": sys.argv[1]}]
print(Anthropic().messages.create(model="default", max_tokens=99, messages=messages).content[0].text)
"""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider([Turn("It rains.")]) as provider:
        yield provider


@pytest.fixture
def daemon(reef_home: Home, provider: Provider) -> Iterator[RunningDaemon]:
    with running_daemon(reef_home, provider.config(key="agent", dialects=["chat", "messages"])) as daemon:
        yield daemon


def run(home: Home, folder: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "reef_cli.main", "run", *words],
        cwd=folder,
        env={**os.environ, "REEF_HOME": str(home.root), "PYTHONPATH": str(REPOSITORY), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(("program", "code"), [(OPENAI, 7), (ANTHROPIC, 0)])
def test_a_program_that_knows_the_usual_variables(
    daemon: RunningDaemon, tmp_path: Path, program: str, code: int
) -> None:
    words = ("--scenario", "work", "--", sys.executable, "-c", program, "-weather?")
    done = run(daemon.home, tmp_path, *words)
    assert (done.returncode, done.stdout) == (code, "It rains.\n"), done.stderr
    (record,) = daemon.get("/reef/records?scenario=work")["items"]
    assert daemon.get("/reef/sessions?scenario=work")["items"][0]["cwd"] == str(tmp_path)
    assert record["end"] == "ok"


def test_keys_of_the_persons_own_are_the_providers(daemon: RunningDaemon, provider: Provider, tmp_path: Path) -> None:
    words = ("--keep-keys", "--", sys.executable, "-c", OPENAI, "weather?")
    assert run(daemon.home, tmp_path, *words, OPENAI_API_KEY="sk-mine").returncode == 7
    assert provider.requests[-1].header("authorization") == "Bearer sk-mine"
    assert run(daemon.home, tmp_path, *words[1:], OPENAI_API_KEY="sk-mine").returncode == 7
    assert "sk-mine" not in str(provider.requests[-1].headers)


def test_its_last_answer_is_rated_from_inside(daemon: RunningDaemon, tmp_path: Path) -> None:
    inside = f'{sys.executable} -c "$1" hi; exec {sys.executable} -m reef_cli.main good'
    done = run(daemon.home, tmp_path, "--", "sh", "-c", inside, "sh", OPENAI)
    assert done.returncode == 0, done.stderr
    receipt = daemon.get("/reef/records")["items"][0]["receipt"]
    (report,) = daemon.get(f"/reef/records/{receipt}")["reports"]
    assert report["score"] == 1.0


def test_a_program_that_is_not_there(reef: Reef) -> None:
    result = reef("run", "--", "no-such-program")
    assert result.code == ExitCode.NOT_FOUND
    assert "there is no program 'no-such-program'" in result.err
    assert reef("run").code == ExitCode.USAGE
