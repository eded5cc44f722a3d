"""Tool calls as a person reads them: a command as a command, a file in the head, an edit as a diff, the rest by name.

Agents name their arguments differently; what they mean is told by those names, not by the tool's. Pure; never raises:
arguments may be anything, also no JSON.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reef_cli.blocks import Block, difference

_COMMANDS: Final = ("command", "cmd")
_FILES: Final = ("path", "file_path", "filePath", "filename", "file", "notebook_path", "target_file")
_OLD: Final = ("oldText", "old_string", "oldString", "old_str")
_NEW: Final = ("newText", "new_string", "newString", "new_str")
_WRITTEN: Final = ("content", "file_text", "file_content", "new_source")
_CODE: Final = {"code": "python", "script": "bash"}
_PATCHES: Final = ("patch", "input", "patch_text", "patchText")
_PATCH: Final = "*** Begin Patch"
_SHELLS: Final = {"bash", "sh", "zsh", "fish"}
#: What is worth a place in the head where neither command nor file is there, in this order.
_HEADS: Final = ("pattern", "query", "url", "description", "skill", "name", "action")
_HEAD: Final = 200


@dataclass(frozen=True, slots=True)
class Call:
    """``head`` is one line of foreign text: the tool, then what it is about. ``file``: the one it reads or writes."""

    name: str
    head: str
    arguments: str
    given: Mapping[str, Any] | None
    file: str = ""

    def blocks(self) -> list[Block]:
        """All of the arguments; what the head has whole is not said again."""
        if self.given is None:
            return [_text_or_patch(self.arguments)] if self.arguments else []
        return list(_blocks(self.given, self.head))


def read(name: str, arguments: str) -> Call:
    """``arguments`` as the model wrote them."""
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        files = ", ".join(_patched(arguments))
        return Call(name, f"{name} {files or arguments[:_HEAD]}".rstrip(), arguments, None)
    file = _first(given, _FILES)
    patch = _first(given, _PATCHES)
    about = _command(given) or file or ", ".join(_patched(patch)) or _first(given, _HEADS) or _rest(given)
    mark = "$ " if _command(given) else ""
    line, _, rest = about.strip().partition("\n")
    more = " …" if rest or len(line) > _HEAD else ""
    return Call(name, f"{name} {mark}{line[:_HEAD]}{more}".rstrip(), arguments, given, file)


def _command(given: Mapping[str, Any]) -> str:
    """A shell's command, also as the words of one."""
    for name in _COMMANDS:
        command = given.get(name)
        if isinstance(command, str) and command:
            return command
        if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
            shell = len(command) == 3 and command[0].rpartition("/")[2] in _SHELLS and command[1].startswith("-")
            return command[2] if shell else shlex.join(command)
    return ""


def _first(given: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((value for name in names if isinstance(value := given.get(name), str) and value), "")


def _rest(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_short(value)}" for name, value in given.items())


def _short(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:_HEAD].replace("\n", " ")


def _patched(text: str) -> Iterator[str]:
    """The files that a patch in Codex' form is about."""
    if _PATCH not in text:
        return
    for line in text.splitlines():
        for mark in ("*** Update File: ", "*** Add File: ", "*** Delete File: "):
            if line.startswith(mark):
                yield line.removeprefix(mark)


def _blocks(given: Mapping[str, Any], head: str) -> Iterator[Block]:
    command, file = _command(given), _first(given, _FILES)
    told = {name for name in _FILES if given.get(name) == file and file and head.endswith(file)}
    if command:
        told |= {name for name in _COMMANDS if name in given}
        if not head.endswith(f"$ {command}"):
            yield _text_or_patch(command, "bash")
    edits = list(_edits(given))
    yield from (difference(was, now) for was, now in edits)
    if edits:
        told |= {*_OLD, *_NEW, "edits"}
    for name, value in given.items():
        if name not in told:
            yield _argument(name, value, file)


def _edits(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was and what is to be, once or many times."""
    several = given.get("edits")
    if isinstance(several, str):  # some models write the list as text
        try:
            several = json.loads(several)
        except (ValueError, RecursionError):
            several = None
    for edit in (given, *(several if isinstance(several, list) else ())):
        if isinstance(edit, dict) and any(isinstance(edit.get(name), str) for name in _OLD):
            yield _first(edit, _OLD), _first(edit, _NEW)


def _argument(name: str, value: Any, file: str) -> Block:
    if isinstance(value, str):
        if name in _WRITTEN and file:
            return Block("\n".join(f"+{line}" for line in value.splitlines()), "diff")
        if _PATCH in value:
            return _text_or_patch(value)
        if name in _CODE and "\n" in value:
            return Block(value, "code", _CODE[name])
        return Block(f"{name}: {value}" if "\n" not in value else f"{name}:\n{_indented(value)}")
    return Block(f"{name}: {json.dumps(value, ensure_ascii=False, indent=None if _flat(value) else 2)}")


def _flat(value: Any) -> bool:
    return not isinstance(value, list | dict) or len(json.dumps(value)) <= 72


def _text_or_patch(text: str, language: str = "") -> Block:
    if _PATCH in text:
        return Block(text, "diff")
    return Block(text, "code", language) if language else Block(text)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
