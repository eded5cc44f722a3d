"""What the daemon hands an agent's wrapper: one release's harness, its manifest and signature. Checked before use.

Nothing of a release reaches an agent's configuration but through `checked`: the signature against the key in this
home (never one that came along with the release), every file against the manifest, no file more or less, no path that
leads out. ``base``, the agent as it is, has nothing to check: it holds no files.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from daemon.core.errors import Untrusted

#: `daemon.core.releases.BASE_RELEASE`, whose module is a tenth of a start.
BASE: Final = "base"
_ID: Final = re.compile(r"base|r[0-9]{1,9}-[0-9a-f]{8}")
_BELOW: Final = "harness/"
_HINT: Final = "reef releases list shows the chain; reef releases rollback leaves a release that cannot be trusted"


class Delivery(NamedTuple):  # not a dataclass: see daemon.core.paths.Home
    """`files` maps paths below ``harness/`` to texts. ``reason`` and ``verdict`` are a sentence each, for people."""

    release_id: str
    number: int
    scenario: str
    files: Mapping[str, str]
    manifest: str | None
    signature: str | None
    kind: str | None
    reason: str
    verdict: str

    def facts(self) -> dict[str, object]:
        """What a notice tells."""
        named = ("release_id", "number", "kind", "reason", "verdict")
        return {name: getattr(self, name) for name in named}

    def said(self) -> str:
        """The same in a line: ``release r3 · rule added: … · accepted 9-0``."""
        return " · ".join(part for part in (f"release {short(self.release_id)}", self.reason, self.verdict) if part)

    def dump(self) -> str:
        """As kept beside a release, so that it can be checked again without the daemon."""
        return json.dumps(self._asdict(), sort_keys=True)


def short(release_id: str) -> str:
    """``r3`` of ``r3-0123abcd``."""
    return release_id.partition("-")[0]


def parse(told: Mapping[str, Any]) -> Delivery:
    """An answer of ``GET /reef/harness``, or `Delivery.dump`. Raises Untrusted for what is none."""
    try:
        delivery = Delivery(
            release_id=str(told["release_id"]),
            number=int(told["number"]),
            scenario=str(told["scenario"]),
            files={str(path): str(text) for path, text in told["files"].items()},
            manifest=told.get("manifest"),
            signature=told.get("signature"),
            kind=told.get("kind"),
            reason=str(told.get("reason") or ""),
            verdict=str(told.get("verdict") or ""),
        )
        json.dumps(delivery, ensure_ascii=False).encode()  # half a character would come up later, and anywhere
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise Untrusted(f"this is no release: {type(error).__name__} {error}", hint="reef doctor") from None
    if not _ID.fullmatch(delivery.release_id):
        raise Untrusted(f"{delivery.release_id[:80]!r} is not a release's id", hint=_HINT)
    return delivery


def checked(delivery: Delivery, key: Path, seal: str = "") -> Delivery:
    """The same, once it is vouched for. ``key``: the allowed_signers file of this home. Raises Untrusted.

    ``seal``: `seal` of a delivery that passed here before. Where manifest, signature and key are those to the byte, the
    signature is not computed again; files are compared with the manifest in any case.
    """
    if delivery.release_id == BASE:
        if delivery.files or delivery.number:
            raise Untrusted("the base release brings files that nobody signed", hint=_HINT)
        return delivery
    if not isinstance(delivery.manifest, str) or not isinstance(delivery.signature, str):
        raise _untrusted(delivery, "it is not signed")
    _check_signature(delivery, key, seal)
    said = json.loads(delivery.manifest)
    for name, told in (("id", delivery.release_id), ("number", delivery.number), ("scenario", delivery.scenario)):
        if said.get(name) != told:
            raise _untrusted(delivery, f"its manifest says {name} {str(said.get(name))[:80]!r}")
    _check_places(delivery, said["files"])
    listed = {path[len(_BELOW) :]: digest for path, digest in said["files"].items() if path.startswith(_BELOW)}
    for path in sorted(listed.keys() ^ delivery.files.keys()):
        raise _untrusted(delivery, f"{path!r} is {'missing' if path in listed else 'not in its manifest'}")
    for path, text in delivery.files.items():
        if hashlib.sha256(text.encode()).hexdigest() != listed[path]:
            raise _untrusted(delivery, f"{path!r} was changed")
    return delivery


def seal(delivery: Delivery, key: Path) -> str:
    """What a signature was checked over: manifest, signature and key. It is kept where the key is, so who could forge
    it could put another key there. Empty for the base release."""
    if delivery.release_id == BASE:
        return ""
    return _sealed(delivery, _allowed(delivery, key))


def _check_places(delivery: Delivery, paths: Mapping[str, str]) -> None:
    if not paths:
        return
    from daemon.core import harness  # not at import: a release without files needs none of it

    for path in paths:
        if not harness.holds(path):
            raise _untrusted(delivery, f"{path!r} is not a path for a release")
    if two := harness.clash(paths):
        raise _untrusted(delivery, f"{two[1]!r} has no place beside {two[0]!r}")


def _sealed(delivery: Delivery, allowed: str) -> str:
    return hashlib.sha256(json.dumps([delivery.manifest, delivery.signature, allowed]).encode()).hexdigest()


def _allowed(delivery: Delivery, key: Path) -> str:
    try:
        return key.read_text("ascii", "replace")
    except OSError as error:
        raise _untrusted(delivery, f"there is no key to check it with: {key}: {error.strerror}") from None


def _check_signature(delivery: Delivery, key: Path, known: str) -> None:
    assert delivery.manifest is not None
    assert delivery.signature is not None
    allowed = _allowed(delivery, key)
    if known == _sealed(delivery, allowed):
        return
    from daemon.core.sshsig import verify_manifest  # its imports are a third of a start

    try:
        verify_manifest(delivery.manifest.encode(), delivery.signature, allowed)
    except Untrusted as error:
        raise _untrusted(delivery, error.message) from None


def _untrusted(delivery: Delivery, why: str) -> Untrusted:
    return Untrusted(f"release {delivery.release_id} is refused: {why}", hint=_HINT)
