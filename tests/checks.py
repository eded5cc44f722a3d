"""Runs every check: format, lint, types, layers, tests. ``tests/check`` starts it with any Python; it needs no more.

The environment is made once for each set of locked requirements and kept in the user's cache, with what mypy found
out, so that a second clone starts at once. The engine's wheel and the default model are kept there too. Ends with a
table of where the time went.
"""

import argparse
import fcntl
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "dev.txt"
#: pytest's exit status where no test was chosen.
_NO_TESTS = 5
#: No part takes so long, on a busy machine neither: one that does hangs, and is ended with the stacks of its threads.
_LONGEST_SECONDS = 4800
PACKAGES = ("reef_cli", "daemon", "adapters", "recipes", "tests", "bench")


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    seconds: float
    passed: bool


def main() -> int:
    options, pytest_arguments = _arguments()
    if options.lock:
        return _write_locks()
    started = time.monotonic()
    try:
        python = str(_environment())
    except subprocess.CalledProcessError as error:
        print(f"no environment for the checks: {shlex.join(error.cmd)} failed", file=sys.stderr)
        print("on Debian and Ubuntu: sudo apt install python3-venv; else check the network", file=sys.stderr)
        return 1
    setup = [
        Step("engine", (python, "-m", "daemon.engines.wheel")),
        Step("model", (python, "-m", "tests.default_model")),
    ]
    results = [Result("setup", time.monotonic() - started, True), *_run(setup, stop=True)]
    if all(result.passed for result in results):
        results += _run(_checks(python, fix=options.fix), stop=False)
        os.nice(19)  # as jobs are that some tests wait for: beside several parts they would hardly run otherwise
        results += _beside(_tests(python, pytest_arguments, slow=options.slow))
    return _conclude(results, time.monotonic() - started)


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="tests/check",
        description="Run every check. What is not known here goes to pytest: -k WORD, paths, -x.",
        allow_abbrev=False,
    )
    parser.add_argument("--slow", action="store_true", help="also the tests that take minutes or install real agents")
    parser.add_argument("--fix", action="store_true", help="format and fix what can be fixed")
    parser.add_argument("--lock", action="store_true", help="rewrite requirements/ from pyproject.toml; needs uv")
    return parser.parse_known_args()


def _checks(python: str, *, fix: bool) -> list[Step]:
    packages = [name for name in PACKAGES if (ROOT / name).is_dir()]
    return [
        Step("format", (python, "-m", "ruff", "format", *([] if fix else ["--check"]))),
        Step("lint", (python, "-m", "ruff", "check", *(["--fix"] if fix else []))),
        Step("types", (python, "-m", "mypy", f"--cache-dir={Path(python).parents[1] / 'mypy'}", *packages)),
        Step("layers", (str(Path(python).with_name("lint-imports")),)),
    ]


def _tests(python: str, arguments: list[str], *, slow: bool) -> list[Step]:
    """In parts: those that ask the engine compute, the others mostly wait, most of all for real agents."""
    parts = {"tests": "not engine and not slow", "engine": "engine" if slow else "engine and not slow"}
    if slow:
        parts["slow"] = "slow and not engine"
    pytest = (python, "-m", "pytest", "--durations=10", "--durations-min=1")
    return [
        Step(name, (*pytest, "-o", f"cache_dir=.pytest_cache/{name}", "-m", chosen, *arguments))
        for name, chosen in parts.items()
    ]


def _environment() -> Path:
    """The Python of an environment with exactly what the lock says; made if it is not there."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    key = hashlib.sha256(LOCK.read_bytes() + sys.prefix.encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reef" / "check"
    folder = cache / f"{tag}-{key}"
    python = folder / "bin" / "python"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "complete").exists() and python.exists():
            return python
        print(f"== setup: an environment with {LOCK.relative_to(ROOT)}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*install, "--require-hashes", "--requirement", str(LOCK)], check=True)
        (folder / "complete").touch()
    return python


def _run(steps: list[Step], *, stop: bool) -> list[Result]:
    results: list[Result] = []
    for step in steps:
        print(f"== {step.name}", flush=True)
        started = time.monotonic()
        passed = subprocess.run(step.command, cwd=ROOT, env=_variables()).returncode == 0
        results.append(Result(step.name, time.monotonic() - started, passed))
        if stop and not passed:
            break
    return results


def _beside(steps: list[Step]) -> list[Result]:
    """All at once. The first is heard; what each other one says is told once those before it have ended."""
    started = time.monotonic()
    codes: dict[Step, tuple[int, float]] = {}
    with ExitStack() as stack:
        files = {step: stack.enter_context(tempfile.NamedTemporaryFile()) for step in steps[1:]}
        said = {step: stack.enter_context(Path(file.name).open("rb")) for step, file in files.items()}
        running = {step: stack.enter_context(_begun(step, files.get(step))) for step in steps}
        print(f"== {' and '.join(step.name for step in steps)}", flush=True)
        heard = list(steps)
        while heard:
            time.sleep(0.1)
            for step in running.keys() - codes.keys():
                if time.monotonic() - started > _LONGEST_SECONDS:
                    running[step].send_signal(signal.SIGABRT)
                if (code := running[step].poll()) is not None:
                    codes[step] = code, time.monotonic() - started
            if heard[0] in said:
                shutil.copyfileobj(said[heard[0]], sys.stdout.buffer)
                sys.stdout.flush()
            if heard[0] in codes:
                heard.pop(0)
                if heard:
                    print(f"== {heard[0].name}", flush=True)
    some = any(code != _NO_TESTS for code, _ in codes.values())  # -k may leave none in some of them
    fine = (0, _NO_TESTS) if some else (0,)
    return [Result(step.name, seconds, code in fine) for step in steps for code, seconds in [codes[step]]]


def _begun(step: Step, out: IO[bytes] | None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(step.command, cwd=ROOT, env=_variables(), stdout=out, stderr=out)


def _variables() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


def _conclude(results: list[Result], seconds: float) -> int:
    print("\n== where the time went", flush=True)
    for result in results:
        print(f"{result.name:<10} {result.seconds:8.1f} s  {'ok' if result.passed else 'FAILED'}")
    failed = [result.name for result in results if not result.passed]
    print(f"{'total':<10} {seconds:8.1f} s  {', '.join(failed) or 'all ok'}", flush=True)
    return 1 if failed else 0


def _write_locks() -> int:
    """One resolution for every Python and platform; hashes for every file; no index named in the result."""
    uv = shutil.which("uv")
    if uv is None:
        print("tests/check --lock needs uv on the PATH", file=sys.stderr)
        return 1
    resolve = [
        uv,
        "pip",
        "compile",
        "--quiet",
        "--universal",
        "--python-version=3.11",
        "--generate-hashes",
        "--upgrade",
    ]
    resolve += ["--custom-compile-command=tests/check --lock", "--no-emit-package=llama-cpp-python"]
    core, project = ROOT / "requirements" / "core.txt", "pyproject.toml"
    subprocess.run([*resolve, project, "--extra=local", "-o", str(core)], cwd=ROOT, check=True)
    subprocess.run(
        [*resolve, project, "--extra=local", "--group=dev", "-c", str(core), "-o", str(LOCK)], cwd=ROOT, check=True
    )
    build, train = ROOT / "requirements" / "build.txt", ROOT / "requirements" / "train.txt"
    subprocess.run([*resolve, "-", "-o", str(build)], cwd=ROOT, check=True, input=b"hatchling>=1.27\n")
    # torch is installed apart (recipes/lora/environment.py), so what its builds without CUDA need is named here.
    extra = tomllib.loads((ROOT / project).read_text("utf-8"))["project"]["optional-dependencies"]["train"]
    wanted = [line for line in extra if not line.startswith("torch")]
    wanted += ["filelock", "fsspec", "jinja2", "networkx", "setuptools", "sympy", "typing-extensions"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as overrides:
        overrides.write("torch ; sys_platform == 'none'\n")
        overrides.flush()
        without = ["--overrides", overrides.name, "--no-emit-package=torch"]
        subprocess.run(
            [*resolve, *without, "-", "-o", str(train)], cwd=ROOT, check=True, input="\n".join(wanted).encode()
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
