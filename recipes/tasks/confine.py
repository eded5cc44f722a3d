"""Runs one command that must not be trusted with anything: a task's check, on text that a model wrote.

Its own program (``python -I -S confine.py SECONDS COMMAND…``), so that nothing of a job's is shared with the command.
Standard library only. The command gets: a directory to write in (the working directory) and no other, no TCP, no
signals to the outside (Landlock; as much of it as the kernel has), no new privileges, bounds on time, memory, files
and processes; as root also another user. It opens no socket of any kind (seccomp, on the two usual architectures):
Reef's control socket asks this user for no token, so an answer that is run as a program could release itself. Whatever
it leaves running is killed, wherever it fled to. It may read what any program of that user may read: this bounds
accidents and answers gone wrong, it is no sandbox for an attacker.
Exit status: the command's; 124 out of time; 126 it could not be confined; 127 it could not be started.
"""

import contextlib
import ctypes
import errno
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Final

OUT_OF_TIME: Final = 124
NOT_CONFINED: Final = 126
NOT_STARTED: Final = 127

#: As root: the user that owns nothing. Only where it exists in this user namespace.
NOBODY: Final = 65534
_PROCESSES: Final = 64
_FILE_BYTES: Final = 64 << 20
_DATA_BYTES: Final = 2 << 30
_FILES: Final = 256
#: How long what refuses to die is hunted.
_HUNT_SECONDS: Final = 5.0

_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_CHILD_SUBREAPER: Final = 36
# Landlock, linux/landlock.h: the same system call numbers on all architectures.
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_WRITE_FILE: Final = 1 << 1
#: Write, remove, make; from version 2 link across directories, from 3 truncate.
_WRITES: Final = (_WRITE_FILE | sum(1 << bit for bit in range(4, 13)), 1 << 13, 1 << 14)
_TCP: Final = 0b11
_SCOPES: Final = 0b11
# seccomp(2), linux/filter.h, linux/audit.h: machine → its audit number and that of socket(2).
_SET_SECCOMP: Final = 22
_FILTER: Final = 2
_MACHINES: Final = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_IO_URING_SETUP: Final = 425  # makes sockets of its own
_X32: Final = 0x40000000
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | 13  # EACCES


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Step(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Step)))


class _Late(Exception):
    """The command's time is over."""


def main(words: list[str]) -> int:
    """Run ``words[1:]`` for at most ``words[0]`` seconds; the exit status described above."""
    seconds = float(words[0])
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what detaches itself comes back to us instead of to init
    child = os.fork()
    if child == 0:
        _become(words[1:], seconds)
    signal.signal(signal.SIGALRM, _ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        _, status = os.waitpid(child, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        code = os.waitstatus_to_exitcode(status)
    except _Late:
        code = OUT_OF_TIME
    signal.setitimer(signal.ITIMER_REAL, 0)
    _kill_all(child)
    return code if code >= 0 else 128 - code


def _ring(*_: object) -> None:
    raise _Late


def _become(command: list[str], seconds: float) -> None:
    """In the child: never returns, whatever happens, or there would be two of us."""
    try:
        os.setsid()
        _limit(seconds)
        if os.geteuid() == 0:
            _drop()
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _landlock(Path.cwd())
        _no_sockets()
    except BaseException:
        os._exit(NOT_CONFINED)
    try:
        os.execvp(command[0], command)
    except BaseException:
        os._exit(NOT_STARTED)


def _limit(seconds: float) -> None:
    others = 0 if os.geteuid() == 0 else _processes()
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: int(seconds) + 1,
        resource.RLIMIT_FSIZE: _FILE_BYTES,
        resource.RLIMIT_NOFILE: _FILES,
        resource.RLIMIT_DATA: _DATA_BYTES,
        resource.RLIMIT_NPROC: others + _PROCESSES,
    }
    for what, most in limits.items():
        hard = resource.getrlimit(what)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS refuses some
            resource.setrlimit(what, (value, value))


def _processes() -> int:
    """Threads that this user has already: the limit counts them too."""
    count = 0
    for tasks in Path("/proc").glob("[0-9]*/task"):
        with contextlib.suppress(OSError):
            if tasks.stat().st_uid == os.getuid():
                count += len(list(tasks.iterdir()))
    return count


def _drop() -> None:
    """Be nobody. Where a user namespace has no nobody, root there is no root outside: it stays."""
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    except OSError:
        if os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split()[:3] == ["0", "0", "4294967295"]:
            raise


def _landlock(home: Path) -> None:
    """No writing but beneath ``home``, no TCP, no signals out. Nothing where the kernel has no Landlock."""
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform != "linux" or (version := libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)) < 1:
        return
    writes = sum(_WRITES[: min(version, len(_WRITES))])
    rules = _Ruleset(writes, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _called(libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0))
    for path, allowed in ((home, writes), (Path(os.devnull), _WRITE_FILE)):
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        beneath = _Beneath(allowed, handle)
        _called(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(beneath), 0))
        os.close(handle)
    _called(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _no_sockets() -> None:
    """socket(2) fails, whatever it asks for, in every calling convention; socketpair(2) stays. Needs no-new-privs."""
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in _MACHINES:
        return
    architecture, socket = _MACHINES[machine]
    steps = [
        (_LOAD, 0, 0, 4),  # the calling convention
        (_IF_EQUAL, 0, 5, architecture),
        (_LOAD, 0, 0, 0),  # the call's number
        (_IF_AT_LEAST, 3, 0, _X32),
        (_IF_EQUAL, 2, 0, socket),
        (_IF_EQUAL, 1, 0, _IO_URING_SETUP),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _DENY),
    ]
    program = _Program(len(steps), (_Step * len(steps))(*(_Step(*step) for step in steps)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) and ctypes.get_errno() != errno.EINVAL:
        raise OSError(ctypes.get_errno(), "seccomp")  # EINVAL: a kernel without


def _called(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "Landlock")
    return result


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _kill_all(group: int) -> None:
    """The command's process group, then whatever was handed to us by a parent that died, until nothing is left."""
    end = time.monotonic() + _HUNT_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        for child in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def _children() -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
