"""What this machine can compile and run: the facts that decide whether a native wheel fits. Standard library only."""

import os
import platform
import re
import shutil
import sys
from pathlib import Path
from typing import Final

_COMPILERS: Final = {
    "debian": "sudo apt install build-essential",
    "fedora": "sudo dnf install gcc-c++ make",
    "rhel": "sudo dnf install gcc-c++ make",
    "suse": "sudo zypper install gcc-c++ make",
    "arch": "sudo pacman -S base-devel",
    "alpine": "sudo apk add build-base linux-headers",
}


def cpu_flags() -> str:
    """What this processor can do, as one string that is equal wherever a native build runs."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    line = next((line for line in text.splitlines() if re.match(r"(flags|Features)\s*:", line)), "")
    return " ".join(sorted(line.partition(":")[2].split()))


def missing_compiler() -> str | None:
    """The command that installs a C++ compiler here; None when there is one."""
    names = (os.environ.get("CXX", "").split() or ["c++"])[0], "c++", "g++", "clang++"
    if any(shutil.which(name) for name in names):
        return None
    if sys.platform == "darwin":
        return "xcode-select --install"
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    family = f"{release.get('ID', '')} {release.get('ID_LIKE', '')}".split()
    return next((_COMPILERS[name] for name in family if name in _COMPILERS), "install a C++ compiler (gcc or clang)")
