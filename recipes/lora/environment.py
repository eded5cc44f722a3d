"""The training environment: PyTorch and friends, apart from Reef's own, made when the first recipe needs it.

One per lock and Python, in the user's cache, shared by every home: it is over a gigabyte. A ``complete`` file, written
last, makes it count, so an install that was killed leaves nothing that anything uses. The lock names every package
with hashes but torch: the package index serves builds for NVIDIA GPUs (gigabytes) and PyTorch's own index builds for
processors alone under the same version, so `torch_options` chooses. Standard library only; nothing is imported from
the environment here.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from daemon.core.errors import RecipeError
from daemon.core.locks import locked

#: The version that the recipes were measured with (constraints/torch-cpu.txt).
TORCH: Final = "2.13.0"
#: PyTorch's own index of builds without CUDA. ``REEF_TORCH_INDEX`` names another index, for torch alone.
CPU_INDEX: Final = "https://download.pytorch.org/whl/cpu"
_PROBE_SECONDS: Final = 5
#: A train step, which ends with the job that started it, however that ends (PR_SET_PDEATHSIG, SIGKILL).
_START: Final = """
import ctypes, runpy, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
sys.path += {paths!r}
runpy.run_module({module!r}, run_name="__main__")
"""
#: What a person set for other work must not steer this.
_FOREIGN: Final = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV")


def cache() -> Path:
    """``$XDG_CACHE_HOME/reef``, or ``~/.cache/reef``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reef"


def python(say: Callable[[str], None]) -> Path:
    """The Python of the training environment, made if it is not there. Raises RecipeError with pip's words."""
    return Environment(cache() / "environments", _lock()).python(say)


def command(module: str, say: Callable[[str], None], made: "Environment | None" = None) -> list[str]:
    """What runs ``module`` there: one of ours, or one beside a person's recipe. What this process imports from comes
    last on its path: an installed Reef lies among packages of its own environment, which must not stand in for the
    locked ones. ``-I`` so that no PYTHONPATH gets before them.
    """
    paths = [str(Path(__file__).parents[2]), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    there = made.python(say) if made else python(say)
    return [str(there), "-I", "-u", "-c", _START.format(paths=paths, module=module)]


def _lock() -> Path:
    """Beside this file in an installed package, in ``requirements`` in a clone."""
    installed = Path(__file__).with_name("train.txt")
    return installed if installed.exists() else Path(__file__).parents[2] / "requirements" / "train.txt"


@dataclass(frozen=True, slots=True)
class Environment:
    """``root`` holds environments; ``lock`` is a requirements file with hashes; ``torch`` None: without PyTorch."""

    root: Path
    lock: Path
    torch: str | None = TORCH

    @property
    def folder(self) -> Path:
        made_of = [self.lock.read_bytes(), f"{self.torch} {sys.version} {sys.base_prefix} {_torch_index()}".encode()]
        return self.root / f"train-{hashlib.sha256(b''.join(made_of)).hexdigest()[:12]}"

    def ready(self) -> Path | None:
        """Its Python, None when it must be made."""
        found = self.folder / "bin" / "python"
        return found if (self.folder / "complete").exists() and found.exists() else None

    def python(self, say: Callable[[str], None]) -> Path:
        """See `python`. Who comes second waits, and finds the work done."""
        if (found := self.ready()) is not None:
            return found
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.root / "lock", lambda: say("waiting for another install of the training environment")) as lock:
            return self.ready() or self._make(lock, say)

    def _make(self, lock: int, say: Callable[[str], None]) -> Path:
        started = time.monotonic()
        folder, target = self.folder, self.folder / "bin" / "python"
        say(f"making the training environment in {folder}, once: over a gigabyte, some minutes")
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], lock)
        install = [
            sys.executable, "-m", "pip", "--python", str(target), "install", "--quiet", "--no-input", "--no-compile",
            "--disable-pip-version-check",
        ]  # fmt: skip
        _run([*install, "--no-deps", "--require-hashes", "--requirement", str(self.lock)], lock)
        if self.torch is not None:
            options = torch_options()
            say(f"installing torch {self.torch}" + (f" ({' '.join(options)})" if options else ""))
            _run([*install, *options, f"torch=={self.torch}"], lock)
        (folder / "complete").touch()
        size = sum(file.lstat().st_size for file in folder.rglob("*")) >> 20
        say(f"the training environment is there: {size} MB, {time.monotonic() - started:.0f} s")
        return target


def torch_options(cpu_index: str = CPU_INDEX) -> list[str]:
    """How pip gets the right torch. Only on Linux does the package index serve CUDA builds: without an NVIDIA driver
    PyTorch's own index is added, if it answers (its ``2.13.0+cpu`` is newer to pip than ``2.13.0``).
    """
    if named := _torch_index():
        return ["--index-url", named]
    if platform.system() != "Linux" or _has_nvidia() or not _answers(cpu_index):
        return []
    return ["--extra-index-url", cpu_index]


def _torch_index() -> str:
    return os.environ.get("REEF_TORCH_INDEX", "")


def _has_nvidia() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def _answers(index: str) -> bool:
    """Asked beforehand: pip itself would try an index that is not there for minutes."""
    try:
        with urllib.request.urlopen(f"{index}/torch/", timeout=_PROBE_SECONDS) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _run(command: list[str], lock: int) -> None:
    # The child holds the lock too: when this process is killed, whoever comes next waits until pip has stopped
    # writing, instead of deleting the folder under it.
    environment = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment, pass_fds=(lock,))
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RecipeError(
            f"the training environment cannot be made: {last}",
            hint="check the network and the package index; REEF_TORCH_INDEX names an index for torch alone",
        )
