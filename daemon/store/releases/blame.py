"""Where each line of a release's files came from: the release that put it there.

Git's own blame over the chain, with two differences. A rollback put nothing in, so its lines belong to whoever put them
into what it restored. And a rule of the playbook is the same rule when its counters move.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from daemon.core import harness, playbook
from daemon.core.errors import NotFound, Untrusted, UsageError
from daemon.core.harness import BELOW
from daemon.core.releases import BASE_RELEASE, Release, ReleaseKind
from daemon.store.releases import commits, lfs
from daemon.store.releases.chain import Chain
from daemon.store.releases.links import Tip
from daemon.store.releases.objects import Reader

_PLAYBOOK: Final = f"{BELOW}{playbook.PATH}"
_HEAD: Final = re.compile(r"([0-9a-f]{40}) (\d+) \d+(?: \d+)?")

#: A line's number, or a rule's text.
_Key = int | str


class _Put(NamedTuple):
    """``commit`` put the line there; it is ``key`` in it."""

    text: str
    commit: str
    key: _Key


class Blaming(Chain):
    """`Chain` with where its lines came from. Blocking: call it off the event loop."""

    def blame(self, scenario: str, id: str, path: str) -> list[tuple[str, Release]]:
        """Every line of a file (``rules.md``, ``routing.json``) in a release or candidate, with the one that put it
        there. Raises NotFound, UsageError for weights, Untrusted.
        """
        full = path if path == harness.ROUTING or path.startswith((BELOW, "weights/")) else f"{BELOW}{path}"
        with Reader(self._repository) as reader:
            tip = self._tip(reader, scenario)
            found = self._find(reader, scenario, id, tip).release
            if full not in found.files:
                there = ", ".join(sorted(name.removeprefix(BELOW) for name in found.files)) or "no file"
                raise NotFound(f"{found.id} has no file {path[:200]!r}", hint=f"it has {there}"[:500])
            if lfs.is_large(full):
                raise UsageError(f"{path} is weights, which have no lines", hint="reef releases card")
            assert found.commit is not None
            known: dict[str, Mapping[_Key, _Put]] = {}
            lines = self._placed(reader, found.commit, full, known)
            return [(put.text, self._origin(reader, tip, full, put, known=known)) for put in lines.values()]

    def _origin(
        self, reader: Reader, tip: Tip, path: str, put: _Put, *, known: dict[str, Mapping[_Key, _Put]]
    ) -> Release:  # fmt: skip
        while True:
            release = commits.linked(reader, put.commit, self._signer.public).release
            if release.kind is not ReleaseKind.ROLLBACK or release.restores in (None, BASE_RELEASE):
                return release
            restored = self._find(reader, release.scenario, str(release.restores), tip)
            put = self._placed(reader, restored.commit, path, known)[put.key]

    def _placed(
        self, reader: Reader, commit: str, path: str, known: dict[str, Mapping[_Key, _Put]]
    ) -> Mapping[_Key, _Put]:
        """A file's lines in order, by what they are in this commit."""
        if commit not in known:
            lines: dict[_Key, _Put] = dict(enumerate(self._git_blame(commit, path), 1))
            known[commit] = self._as_rules(reader, commit, lines) if path == _PLAYBOOK else lines
        return known[commit]

    def _git_blame(self, commit: str, path: str) -> list[_Put]:
        told = self._repository.run("blame", "--line-porcelain", "--no-progress", commit, "--", path)
        lines, at = [], ("", 0)
        for line in told.decode("utf-8", "replace").split("\n"):
            if line.startswith("\t"):
                lines.append(_Put(line[1:], *at))
            elif found := _HEAD.fullmatch(line):
                at = found[1], int(found[2])
        return lines

    def _as_rules(self, reader: Reader, commit: str, lines: Mapping[_Key, _Put]) -> dict[_Key, _Put]:
        """The same, where rules are told by their texts: each put there by the first commit of those that have it
        without a gap, whatever its counters were."""
        rules = self._rules(reader, commit)
        origins, open_ones = dict.fromkeys(rules.values(), commit), set(rules.values())
        told = self._repository.run("log", "--first-parent", "--format=%H", commit, "--", _PLAYBOOK)
        for name in told.decode().split():
            open_ones &= set(self._rules(reader, name).values())
            origins |= dict.fromkeys(open_ones, name)
            if not open_ones:
                break
        made: dict[_Key, _Put] = {}
        for number, put in lines.items():
            rule = rules.get(put.text)
            if rule is None or rule in made:
                made[number] = put
            else:
                made[rule] = _Put(put.text, origins[rule], rule)
        return made

    def _rules(self, reader: Reader, commit: str) -> dict[str, str]:
        """Line → the rule without its counters; empty for a playbook that is not there or cannot be read."""
        try:
            text = reader.get(f"{commit}:{_PLAYBOOK}", "blob").decode()
            return {playbook.line(rule): f"{rule.id} {rule.text}" for rule in playbook.parse(text)}
        except (Untrusted, ValueError):
            return {}
