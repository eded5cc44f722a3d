"""A release as a signed Git commit: made here, and proved here on every read that leads to serving or delivering it.

Nothing in the repository is believed because it is there. A snapshot is what `verified` returns: commit and manifest
signed by this home's key, every file of the tree in the manifest with its hash, no file more.
"""

import hashlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from daemon.core import harness, sshsig
from daemon.core.errors import Untrusted
from daemon.core.releases import Release, ReleaseState
from daemon.core.sshsig import COMMIT_NAMESPACE, MANIFEST_NAMESPACE, Signer
from daemon.store.releases import lfs, manifest
from daemon.store.releases.objects import Reader, Writer

ATTRIBUTES_PATH: Final = ".gitattributes"
_OWN: Final = (manifest.PATH, manifest.SIGNATURE_PATH, ATTRIBUTES_PATH)
_TRAILER: Final = re.compile(r"^Reef-(State|Note): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A proved commit. ``blobs`` are the snapshot's own files by path; ``parent`` the Git parent."""

    commit: str
    parent: str | None
    release: Release
    manifest: bytes
    signature: str
    blobs: Mapping[str, str]


# -- making -----------------------------------------------------------------------------------------


def make(writer: Writer, signer: Signer, release: Release, blobs: Mapping[str, str], *, parent: str | None) -> Snapshot:
    """Write the commit of a release whose files are blobs already. Nothing names it yet."""
    raw = manifest.dump(release)
    signature = signer.sign(raw, MANIFEST_NAMESPACE)
    tree = writer.tree(
        {
            **blobs,
            manifest.PATH: writer.blob(raw),
            manifest.SIGNATURE_PATH: writer.blob(signature.encode()),
            ATTRIBUTES_PATH: writer.blob(lfs.ATTRIBUTES),
        }
    )
    commit = writer.commit(_signed(signer, tree, parent, _message(release)))
    return Snapshot(commit, parent, replace(release, commit=commit), raw, signature, blobs)


def retold(writer: Writer, signer: Signer, reader: Reader, snapshot: Snapshot) -> Snapshot:
    """The same content under the state and note that ``snapshot.release`` has now."""
    head, _ = reader.get(snapshot.commit, "commit").split(b"\n", 1)
    tree = head.removeprefix(b"tree ").decode()
    commit = writer.commit(_signed(signer, tree, snapshot.parent, _message(snapshot.release)))
    return replace(snapshot, commit=commit, release=replace(snapshot.release, commit=commit))


def _message(release: Release) -> str:
    trailers = {"Reef-Release": release.id, "Reef-Job": release.job}
    if release.state is not ReleaseState.RELEASED:
        trailers |= {"Reef-State": release.state.value, "Reef-Note": release.note or None}
    lines = [f"{name}: {_one_line(value)}" for name, value in trailers.items() if value]
    return "\n".join([f"{release.id}: {_one_line(release.reason)}", "", *lines, ""])


def _one_line(text: str) -> str:
    return " ".join(text.encode("utf-8", "replace").decode().split())[:500]


def _signed(signer: Signer, tree: str, parent: str | None, message: str) -> bytes:
    who = f"Reef <reef@localhost> {int(time.time())} +0000"
    lines = [f"tree {tree}", *([f"parent {parent}"] if parent else []), f"author {who}", f"committer {who}"]
    head, body = "\n".join(lines) + "\n", f"\n{message}"
    signature = signer.sign((head + body).encode(), COMMIT_NAMESPACE).rstrip("\n").replace("\n", "\n ")
    return f"{head}gpgsig {signature}\n{body}".encode()


# -- proving ----------------------------------------------------------------------------------------


def verified(reader: Reader, name: str, public: bytes) -> Snapshot:
    """The snapshot of a commit, all of it proved but the bytes of large files (`lfs.Objects.whole` proves those).

    Raises Untrusted.
    """
    snapshot, tree = _linked(reader, name, public)
    files = dict(tree)
    own = {path: files.pop(path, None) for path in _OWN}
    attributes = own[ATTRIBUTES_PATH]
    if attributes is None or reader.get(attributes, "blob") != lfs.ATTRIBUTES:
        raise Untrusted(f"{snapshot.release.id}: {ATTRIBUTES_PATH} is not Reef's")
    if files.keys() != snapshot.release.files.keys():
        odd = sorted(files.keys() ^ snapshot.release.files.keys())[0]
        what = "is in the tree but not signed" if odd in files else "is signed but not in the tree"
        raise Untrusted(f"{snapshot.release.id}: {odd} {what}")
    for path, digest in snapshot.release.files.items():
        if not harness.holds(path):
            raise Untrusted(f"{snapshot.release.id}: {path[:200]!r} is not a path for a release", hint="update Reef")
        content = reader.get(files[path], "blob")
        pointer = lfs.parse(content) if lfs.is_large(path) else None
        found = pointer.oid if pointer else hashlib.sha256(content).hexdigest()
        if found != digest or (lfs.is_large(path) and pointer is None):
            raise Untrusted(f"{snapshot.release.id}: {path} is not the file that was signed")
    return replace(snapshot, blobs=files)


def linked(reader: Reader, name: str, public: bytes) -> Snapshot:
    """Who a commit is and what came before it, signatures proved, files not looked at. Raises Untrusted."""
    return _linked(reader, name, public)[0]


def _linked(reader: Reader, name: str, public: bytes) -> tuple[Snapshot, dict[str, str]]:
    raw = reader.get(name, "commit")
    headers, signed, signature = _split(raw, name)
    sshsig.verify(signed, signature, COMMIT_NAMESPACE, public)
    tree = reader.tree(headers["tree"][0])
    if manifest.PATH not in tree or manifest.SIGNATURE_PATH not in tree:
        raise Untrusted(f"commit {name[:12]} has no signed release.json")
    content = reader.get(tree[manifest.PATH], "blob")
    armored = reader.get(tree[manifest.SIGNATURE_PATH], "blob").decode("ascii", "replace")
    sshsig.verify(content, armored, MANIFEST_NAMESPACE, public)
    release = manifest.load(content)
    told = dict(_TRAILER.findall(signed.partition(b"\n\n")[2].decode("utf-8", "replace")))
    state = told.get("State", ReleaseState.RELEASED.value)
    if state not in list(ReleaseState):
        raise Untrusted(f"{release.id} has the state {state!r}", hint="update Reef")
    release = replace(release, state=ReleaseState(state), note=told.get("Note", ""), commit=name)
    parent = headers.get("parent", [None])
    if len(parent) > 1:
        raise Untrusted(f"{release.id} has {len(parent)} parents")
    return Snapshot(name, parent[0], release, content, armored, {}), tree


def _split(raw: bytes, name: str) -> tuple[dict[str, list[str]], bytes, str]:
    """A commit's headers, the bytes that its signature covers, and the signature."""
    head, gap, body = raw.partition(b"\n\n")
    headers: dict[str, list[str]] = {}
    kept: list[bytes] = []
    signature: list[bytes] = []
    inside = False
    for line in head.split(b"\n"):
        if line.startswith(b" ") and inside:
            signature.append(line[1:])
            continue
        inside = line.startswith(b"gpgsig ")
        if inside:
            signature.append(line.removeprefix(b"gpgsig "))
            continue
        kept.append(line)
        key, _, value = line.decode("utf-8", "replace").partition(" ")
        headers.setdefault(key, []).append(value)
    if not signature or len(headers.get("tree", ())) != 1:
        raise Untrusted(f"commit {name[:12]} is not signed")
    return headers, b"\n".join(kept) + gap + body, b"\n".join(signature).decode("ascii", "replace")
