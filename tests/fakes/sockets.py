"""Which sockets a process has, as the kernel tells them (Linux)."""

from pathlib import Path
from typing import Final

_LOOPBACK: Final = {"tcp": ("0100007F",), "tcp6": ("0" * 24 + "01000000", "0000000000000000FFFF00000100007F")}


def elsewhere(pid: int) -> list[str]:
    """TCP sockets of ``pid`` and its children that are bound to, or speak with, anything but loopback."""
    inodes = {inode for one in (pid, *_children(pid)) for inode in _sockets(one)}
    found = []
    for family, loopback in _LOOPBACK.items():
        for line in Path(f"/proc/net/{family}").read_text().splitlines()[1:]:
            fields = line.split()
            here, there = (field.split(":")[0] for field in fields[1:3])
            if fields[9] in inodes and not (here in loopback and there in (*loopback, "0" * len(there))):
                found.append(line)
    return found


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    direct = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return [*direct, *(grandchild for child in direct for grandchild in _children(child))]


def _sockets(pid: int) -> list[str]:
    found = []
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(handle.readlink())
        except OSError:  # closed meanwhile
            continue
        if target.startswith("socket:["):
            found.append(target[8:-1])
    return found
