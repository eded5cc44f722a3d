"""A Git server on loopback: git's own `http-backend` behind HTTP, with or without Git LFS, and a real sshd.

Over HTTP it wants the password `TOKEN` of any user, as the hosts of the world do; `asked` holds method and path of
every request that it let in.
"""

import base64
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.fakes.daemon import until

TOKEN = "ghp_0123456789abcdefSECRET"
_BACKEND = Path(subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip())
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")


@dataclass
class Host:
    """Repositories are the ``*.git`` below ``root``. ``lfs``: large files are taken. ``status``: answer only that."""

    root: Path
    lfs: bool = True
    status: int | None = None
    silent: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)
    objects: dict[str, bytes] = field(default_factory=dict)
    url: str = ""
    over: threading.Event = field(default_factory=threading.Event)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    host: Host

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PUT(self) -> None:
        self._handle()

    def _handle(self) -> None:
        host, body = self.host, self.rfile.read(int(self.headers.get("content-length") or 0))
        if host.silent:
            host.over.wait()
            return
        given = (self.headers.get("authorization") or "").partition("Basic ")[2]
        if base64.b64decode(given).decode().partition(":")[2] != TOKEN:
            self._answer(401, b"who are you?", {"www-authenticate": 'Basic realm="git"'})
            return
        host.asked.append((self.command, self.path))
        if host.status is not None:
            self._answer(host.status, b"no")
        elif "/info/lfs/" in self.path or self.path.startswith("/objects/"):
            self._large(body)
        else:
            self._backend(body)

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _large(self, body: bytes) -> None:
        """git-lfs/docs/api/batch.md and basic-transfers.md."""
        host, oid = self.host, self.path.rpartition("/")[2]
        form = {"content-type": "application/vnd.git-lfs+json"}
        if not host.lfs:
            self._answer(404, b'{"message": "Not found"}', form)
        elif self.command == "PUT":
            host.objects[oid] = body
            self._answer(200, b"")
        elif self.command == "GET":
            self._answer(200, host.objects[oid])
        elif self.path.endswith("/objects/batch"):
            asked = json.loads(body)
            objects = [self._action(asked["operation"], wanted) for wanted in asked["objects"]]
            self._answer(200, json.dumps({"transfer": "basic", "objects": objects}).encode(), form)
        else:
            self._answer(404, b'{"message": "Not found"}', form)

    def _action(self, operation: str, wanted: dict[str, Any]) -> dict[str, Any]:
        if operation == "upload" and wanted["oid"] in self.host.objects:
            return wanted
        header = {"Authorization": self.headers["authorization"]}
        return wanted | {"actions": {operation: {"href": f"{self.host.url}/objects/{wanted['oid']}", "header": header}}}

    def _backend(self, body: bytes) -> None:
        """As CGI (git-http-backend(1)); who got here is let push."""
        where = urlsplit(self.path)
        variables = {
            "GIT_PROJECT_ROOT": str(self.host.root), "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "me",
            "REMOTE_ADDR": "127.0.0.1", "PATH_INFO": where.path, "QUERY_STRING": where.query,
            "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)), "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""), "PATH": os.environ["PATH"],
        }  # fmt: skip
        done = subprocess.run(
            [_BACKEND / "git-http-backend"], input=body, env=variables, capture_output=True, check=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self._answer(int(headers.pop("Status", "200").split()[0]), content, headers)


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that went away is none of the server's business."""


@contextmanager
def serving(root: Path) -> Iterator[Host]:
    """Over HTTP."""
    host = Host(root)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"host": host}))
    host.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield host
    finally:
        host.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def ssh_serving(folder: Path, port: int) -> Iterator[str]:
    """Over ssh: ``host:port`` of an sshd that lets the key ``folder/key`` in; its own key is in ``folder/known``."""
    assert SSHD is not None
    for name in ("host", "key", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    settings = {
        "ListenAddress": "127.0.0.1", "Port": port, "HostKey": folder / "host", "PidFile": "none", "UsePAM": "no",
        "AuthorizedKeysFile": folder / "key.pub", "StrictModes": "no", "PasswordAuthentication": "no",
    }  # fmt: skip
    (folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    with (folder / "sshd.log").open("w") as log:
        process = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "sshd_config"], stderr=log)
    try:
        until(lambda: "Server listening" in (folder / "sshd.log").read_text(), "sshd listens", 20)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
