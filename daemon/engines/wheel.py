"""Puts llama-cpp-python into the environment that runs this: ``python -m daemon.engines.wheel [--check] [--json]``.

It is on the package index as source only, and compiling it takes minutes; so a wheel that worked once is kept, under a
key of everything it depends on (its code is built for this very processor), and the project's own index of prebuilt
wheels is asked first. No wheel counts before a process of its own has imported it: one built for another processor
dies of an illegal instruction. Standard library only, and nothing here may be needed for a remote engine to serve.
"""

import argparse
import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from daemon.core.errors import ExitCode, ReefError
from daemon.core.locks import locked
from daemon.engines.host import cpu_flags, missing_compiler

PACKAGE: Final = "llama-cpp-python"
#: The project's own wheels for any x86-64 or ARM processor. ``REEF_WHEEL_INDEX`` names another (a mirror, a GPU build).
INDEX: Final = "https://abetlen.github.io/llama-cpp-python/whl/cpu"
#: What the package index serves for the version that pyproject.toml pins; anything else is refused.
SDIST_SHA256: Final = {"0.3.36": "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"}

#: Compiler options where a processor announces AMX. Some virtual machines do and cannot: the engine then dies of SIGILL
#: in the first long prompt, long after any import succeeded. No laptop has it, so nobody loses.
_NO_AMX: Final = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
_PROBE: Final = "import llama_cpp; llama_cpp.llama_backend_init(); llama_cpp.llama_print_system_info()"
_STEP: Final = re.compile(r"\[(\d+)/(\d+)\] ")  # ninja's own progress


class NoCompiler(ReefError):
    """The engine would have to be built, and there is nothing to build it with."""

    kind = "no_compiler"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``how`` is ``present``, ``kept``, ``index`` or ``built``."""

    version: str
    how: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Installer:
    """Installs one version into one environment, the one that ``python`` belongs to."""

    version: str
    sdist_sha256: str
    index: str
    cache: Path
    python: str = sys.executable

    @property
    def kept(self) -> Path:
        """Where this version's wheel for this Python, processor and index stays."""
        tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
        built_for = hashlib.sha256(f"{cpu_flags()}\n{self.index}\n{_cmake_arguments()}".encode()).hexdigest()[:12]
        return self.cache / f"{self.version}-{tag}-{platform.system()}-{platform.machine()}-{built_for}".lower()

    def trouble(self) -> str | None:
        """Why the engine cannot run in this environment; None when it can."""
        code = f"import importlib.metadata as m; assert m.version({PACKAGE!r}) == {self.version!r}; {_PROBE}"
        # -P: a folder called llama_cpp where this was started must not stand in for the package.
        done = subprocess.run([self.python, "-P", "-c", code], capture_output=True, text=True, errors="replace")
        if done.returncode == 0:
            return None
        if done.returncode < 0:
            return f"importing it died of signal {-done.returncode}: built for another processor"
        return (done.stderr.strip().splitlines() or ["it cannot be imported"])[-1]

    def install(self) -> Outcome:
        """Make `trouble` None. Raises NoCompiler, or ReefError with the end of what went wrong."""
        started = time.monotonic()
        with only_one(self.cache):
            how = self._install()
        return Outcome(self.version, how, round(time.monotonic() - started, 1))

    def _install(self) -> str:
        if self.trouble() is None:
            return "present"
        self._need_pip()
        for wheel in sorted(self.kept.glob("*.whl")):
            if self._works(wheel):
                return "kept"
            wheel.unlink()
        if self._from_index():
            return "index"
        self._build()
        return "built"

    def _works(self, wheel: Path) -> bool:
        self._pip("install", "--quiet", "--force-reinstall", "--no-deps", str(wheel))
        self._pip("install", "--quiet", str(wheel))  # what it depends on; nothing where that is installed already
        trouble = self.trouble()
        if trouble is None:
            return True
        say(f"{wheel.name} does not run here ({trouble}); discarded")
        self._pip("uninstall", "--quiet", "--yes", PACKAGE)
        return False

    def _from_index(self) -> bool:
        say(f"asking for a prebuilt {PACKAGE} {self.version}")
        with tempfile.TemporaryDirectory(dir=self.cache) as folder:
            try:
                self._pip(
                    "download", "--quiet", "--no-deps", "--only-binary=:all:", "--index-url", self.index,
                    "--timeout=10", "--retries=0", "--dest", folder, f"{PACKAGE}=={self.version}",
                )  # fmt: skip
            except ReefError:
                say("there is none to be had")
                return False
            wheel = next(Path(folder).glob("*.whl"))
            if not self._works(wheel):
                return False
            self._keep(wheel)
            return True

    def _build(self) -> None:
        if (missing := missing_compiler()) is not None:
            raise NoCompiler(
                f"{PACKAGE} {self.version} must be compiled here, and there is no C++ compiler",
                hint=f"{missing}, then run this again; remote engines work without it",
            )
        say(f"building {PACKAGE} {self.version}: downloads 77 MB, takes about 6 minutes on two cores, once")
        with tempfile.TemporaryDirectory(dir=self.cache) as folder:
            pinned = Path(folder) / "requirement.txt"
            pinned.write_text(f"{PACKAGE}=={self.version} --hash=sha256:{self.sdist_sha256}\n")
            self._run_build(Path(folder), pinned)
            wheel = next(Path(folder).glob("*.whl"))
            if not self._works(wheel):
                raise ReefError(f"the {PACKAGE} that was just built does not run", hint=f"see {self.log}")
            self._keep(wheel)

    @property
    def log(self) -> Path:
        """All that the last build printed."""
        return self.cache / "build.log"

    def _run_build(self, folder: Path, pinned: Path) -> None:
        # --no-cache-dir: pip would hand back what it once built with other options, or for another processor.
        command = [
            self.python, "-m", "pip", "wheel", "--no-cache-dir", "--verbose", "--no-deps", "--require-hashes",
            "--no-binary", PACKAGE,
            "--no-input", "--wheel-dir", str(folder), "--requirement", str(pinned),
        ]  # fmt: skip
        tail: deque[str] = deque(maxlen=15)
        with (
            self.log.open("w", encoding="utf-8") as log,
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, "CMAKE_ARGS": _cmake_arguments()},
            ) as process,
            contextlib.closing(Meter()) as meter,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                log.write(line)
                if step := _STEP.search(line):
                    meter.show(int(step[1]), int(step[2]))
                else:
                    tail.append(line.rstrip())
        if process.returncode != 0:
            raise ReefError(f"building {PACKAGE} failed:\n  " + "\n  ".join(tail), hint=f"the whole log: {self.log}")

    def _keep(self, wheel: Path) -> None:
        self.kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        wheel.replace(self.kept / wheel.name)

    def _need_pip(self) -> None:
        """An environment that uv made has no pip."""
        if subprocess.run([self.python, "-P", "-c", "import pip"], capture_output=True).returncode == 0:
            return
        uv = shutil.which("uv")
        bring = [uv, "pip", "install", "--quiet", "--python", self.python, "pip"] if uv else None
        subprocess.run(bring or [self.python, "-m", "ensurepip"], stdout=sys.stderr, check=True)

    def _pip(self, *arguments: str) -> None:
        command = [self.python, "-m", "pip", arguments[0], "--no-input", "--disable-pip-version-check", *arguments[1:]]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise ReefError(f"pip {arguments[0]} failed: {last}", hint="check the network and the package index")


def _cmake_arguments() -> str:
    """What the build is told: our options, then the person's own ``CMAKE_ARGS`` over them."""
    own = os.environ.get("CMAKE_ARGS", "")
    if "amx_tile" not in cpu_flags().split():  # and an older compiler, which does not know the options, need not
        return own
    return f"'-DCMAKE_C_FLAGS={_NO_AMX}' '-DCMAKE_CXX_FLAGS={_NO_AMX}' {own}".strip()


def wanted_version() -> str:
    """The version that the ``local`` extra of pyproject.toml pins: the only place that names it."""
    project = Path(__file__).parents[2] / "pyproject.toml"
    if project.is_file():
        requirements = tomllib.loads(project.read_text("utf-8"))["project"]["optional-dependencies"]["local"]
    else:
        requirements = importlib.metadata.requires("reef-agents") or []
    return next(match[1] for line in requirements if (match := re.match(rf"{PACKAGE}==([\w.]+)", line)))


@contextlib.contextmanager
def only_one(cache: Path) -> Iterator[None]:
    """Whoever comes second waits, and then finds the work done."""
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(cache / "lock", lambda: say("waiting for another install of the engine to finish")):
        yield


class Meter:
    """How far the compiler is: one line that moves on a terminal, four lines elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._started = time.monotonic()
        self._quarters = 0

    def show(self, done: int, total: int) -> None:
        if self._terminal:
            minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
            line = f"  compiling {done}/{total} · {minutes}:{seconds:02}"
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        elif (quarters := 4 * done // total) > self._quarters:
            self._quarters = quarters
            say(f"compiled {done} of {total}")

    def close(self) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def default_installer() -> Installer:
    version = wanted_version()
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    index = os.environ.get("REEF_WHEEL_INDEX") or INDEX
    return Installer(version, SDIST_SHA256[version], index, root / "reef" / "wheels")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m daemon.engines.wheel", description="Install the embedded engine.")
    parser.add_argument("--check", action="store_true", help="only tell whether it is installed and runs")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    options = parser.parse_args(arguments)
    try:
        installer = default_installer()
        if options.check:
            if (trouble := installer.trouble()) is not None:
                raise ReefError(f"the embedded engine is not usable: {trouble}", hint=parser.prog)
            outcome = Outcome(installer.version, "present", 0.0)
        else:
            outcome = installer.install()
    except ReefError as error:
        if options.json:
            print(json.dumps(error.envelope()))
        say(error.message)
        if error.hint:
            say(error.hint)
        return error.exit_code
    if options.json:
        print(json.dumps({"version": outcome.version, "how": outcome.how, "seconds": outcome.seconds}))
    else:
        say(f"{PACKAGE} {outcome.version} ({outcome.how}, {outcome.seconds:.0f} s)")
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
