"""Environments made of one small package: the same code as the real one's, without its gigabyte."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from daemon.core.errors import RecipeError
from recipes.lora import environment
from recipes.lora.environment import Environment, command, torch_options
from tests.conftest import ROOT
from tests.fakes.serving import serving

linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems' torch has no CUDA")


@pytest.fixture
def small(tmp_path: Path) -> Environment:
    """One package of the training lock, with its hashes."""
    text = (ROOT / "requirements" / "train.txt").read_text("utf-8")
    found = re.search(r"^mdurl==.*\n( +--hash.*\n)+", text, re.M)
    assert found is not None
    lock = tmp_path / "lock.txt"
    lock.write_text(found[0])
    return Environment(tmp_path / "environments", lock, torch=None)


def imports(python: Path, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def test_it_is_made_once(small: Environment) -> None:
    said: list[str] = []
    assert small.ready() is None
    python = small.python(said.append)
    assert imports(python, "mdurl")
    assert small.ready() == python
    told = len(said)
    assert small.python(said.append) == python
    assert told == len(said) == 2


def test_a_persons_own_train_step_runs_and_ends_with_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module lies beside their recipe. The job is killed, so it cannot end anything itself."""
    (tmp_path / "my_train.py").write_text("import os, time, recipes\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(environment, "python", lambda say: Path(sys.executable))
    job = f"import subprocess; subprocess.run({command('my_train', print)!r}, env={{}})"
    process = subprocess.Popen([sys.executable, "-c", job], stdout=subprocess.PIPE)
    assert process.stdout is not None
    step = int(process.stdout.readline())
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while sys.platform == "linux" and Path(f"/proc/{step}").exists():
        assert time.monotonic() < deadline, "the train step outlives its job"
        time.sleep(0.02)
    process.stdout.close()


def test_a_package_of_ours_does_not_stand_in_for_the_locked_one(
    small: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its folder is on this process's path, where a train step of a person's own lies too."""
    ours = tmp_path / "ours"
    (ours / "mdurl").mkdir(parents=True)
    (ours / "mdurl" / "__init__.py").touch()
    (ours / "step.py").write_text("import daemon, mdurl; print(daemon.__file__, mdurl.__file__)")
    monkeypatch.setenv("PYTHONPATH", str(ours))
    ran = subprocess.run(command("step", print, small), capture_output=True, text=True, check=True, cwd=ours)
    reef, locked = map(Path, ran.stdout.splitlines()[-1].split())
    assert reef.is_relative_to(ROOT)
    assert locked.is_relative_to(small.folder)


def test_another_lock_is_another_environment(small: Environment, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(small.lock.read_text() + "# more\n")
    assert Environment(small.root, other, torch=None).folder != small.folder


def test_an_install_that_was_killed_leaves_nothing_that_counts(small: Environment) -> None:
    code = (
        "import sys; from pathlib import Path; from recipes.lora.environment import Environment\n"
        "Environment(Path(sys.argv[1]), Path(sys.argv[2]), torch=None).python(print)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, small.root, small.lock], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (small.folder / "bin" / "python").exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert small.ready() is None
    assert imports(small.python(lambda _: None), "mdurl")


def test_who_comes_second_waits_and_finds_the_work_done(small: Environment) -> None:
    said: list[str] = []
    threads = [threading.Thread(target=small.python, args=(said.append,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(text.startswith("making") for text in said) == 1
    assert small.ready() is not None


def test_a_file_that_is_not_the_locked_one_is_refused(small: Environment) -> None:
    small.lock.write_text(re.sub(r"sha256:\w{8}", "sha256:00000000", small.lock.read_text()))
    with pytest.raises(RecipeError, match="cannot be made"):
        small.python(lambda _: None)
    assert small.ready() is None


@pytest.fixture
def index() -> Iterator[str]:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/cpu/torch/" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answers)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


@linux
def test_torch_without_cuda_comes_from_an_index_that_answers(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REEF_TORCH_INDEX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert torch_options(f"{index}/cpu") == ["--extra-index-url", f"{index}/cpu"]
    assert torch_options(f"{index}/other") == []


def test_a_silent_index_costs_no_time(free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REEF_TORCH_INDEX", raising=False)
    started = time.monotonic()
    assert torch_options(f"http://127.0.0.1:{free_port}") == []
    assert time.monotonic() - started < 5


def test_a_person_may_name_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REEF_TORCH_INDEX", "https://mirror.example/torch")
    assert torch_options() == ["--index-url", "https://mirror.example/torch"]


def test_a_machine_with_an_nvidia_driver_gets_the_build_for_it(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REEF_TORCH_INDEX", raising=False)
    driver = tmp_path / "nvidia-smi"
    driver.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert torch_options(f"{index}/cpu") == []
