"""Others' gateways, to measure beside ours: how to install them, and how each is started.

``python -m bench.peers install [NAME]...`` makes a virtual environment for each under the user's cache (1.5 GB, needs
Python 3.12); nginx is found where the system has it. Versions are pinned. LiteLLM and mlflow record nothing;
reef-infra records and needs git-lfs.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.traffic import Start

_PINS: Final = {
    "reef-infra": "reef-infra==0.1.3",
    "litellm": "litellm[proxy]==1.108.7",
    "mlflow": "mlflow[gateway]==3.17.2",
}
_TOKEN: Final = "sk-bench-0123456789"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description="Install what bench.proxy compares with."
    )
    parser.add_argument("action", choices=["install"])
    parser.add_argument("names", nargs="*", help="all where none is named", metavar="NAME")
    options = parser.parse_args()
    python = sys.executable if sys.version_info >= (3, 12) else shutil.which("python3.12")
    if python is None:
        raise SystemExit("the peers need Python 3.12")
    for name in options.names or _PINS:
        place = _place() / name
        print(f"{_PINS[name]} → {place}", flush=True)
        subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([str(place / "bin" / "pip"), "install", "--quiet", _PINS[name]], check=True)
    return 0


def _place() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "reef" / "bench"


def found() -> list[str]:
    """The peers that can be started here."""
    return [name for name in STARTS if _program(name) is not None]


def _program(name: str) -> str | None:
    if name == "nginx":
        return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    program = _place() / name / "bin" / ("reef" if name == "reef-infra" else name)
    usable = program.exists() and (name != "reef-infra" or shutil.which("git-lfs"))
    return str(program) if usable else None


def start(name: str, folder: Path, port: int, provider: int) -> Start:
    """How to start a peer in front of ``provider``; both are ports. Its files lie in ``folder``."""
    folder.mkdir()
    return STARTS[name](_program(name) or name, folder, port, provider)


def _reef_infra(program: str, folder: Path, port: int, provider: int) -> Start:
    config = folder / "serve.yaml"
    config.write_text(
        f"reef: {{host: 127.0.0.1, port: {port}, token: {_TOKEN}, allow-implicit-scenario-creation: true, "
        f"run-dir: {folder}/run}}\n"
        f'inference: {{upstream-url: "http://127.0.0.1:{provider}", upstream-model: bench, upstream-api-key: x, '
        "upstream-api: openai}\n"
        "recipe: {implementation: recipe}\n"
        f"storage: {{agent-record-dir: {folder}/records, artifact-repository: {folder}/artifacts.git, "
        f"artifact-work-dir: {folder}/work, artifact-cache-dir: {folder}/cache}}\n"
    )
    headers = ["x-reef-scenario: bench", f"authorization: Bearer {_TOKEN}"]
    return Start([program, "serve", "-c", str(config)], headers)


def _litellm(program: str, folder: Path, port: int, provider: int) -> Start:
    config = folder / "config.yaml"
    config.write_text(
        "model_list:\n- model_name: bench\n"
        f'  litellm_params: {{model: openai/bench, api_base: "http://127.0.0.1:{provider}/v1", api_key: x}}\n'
        "litellm_settings: {telemetry: false, num_retries: 0}\ngeneral_settings: {disable_spend_logs: true}\n"
    )
    env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION"}
    env |= {"LITELLM_MASTER_KEY": _TOKEN, "DISABLE_ADMIN_UI": "True", "NO_DOCS": "True"}
    command = [program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    return Start(command, [f"authorization: Bearer {_TOKEN}"], env)


def _mlflow(program: str, folder: Path, port: int, provider: int) -> Start:
    config = folder / "config.yaml"
    config.write_text(
        "endpoints:\n- name: chat\n  endpoint_type: llm/v1/chat\n  model:\n    provider: openai\n    name: bench\n"
        f'    config: {{openai_api_key: x, openai_api_base: "http://127.0.0.1:{provider}/v1"}}\n'
    )
    env = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    command = [program, "gateway", "start", "--config-path", str(config), "--port", str(port), "--workers", "1"]
    return Start(command, (), env, model="chat")


def _nginx(program: str, folder: Path, port: int, provider: int) -> Start:
    config = folder / "nginx.conf"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    user = "user root; " if os.geteuid() == 0 else ""
    config.write_text(
        f"worker_processes 1; daemon off; {user}pid {folder}/pid; error_log {folder}/error.log;\n"
        "events { worker_connections 1024; }\n"
        f"http {{ access_log off; client_max_body_size 100m; client_body_buffer_size 4m; {places}\n"
        f"keepalive_requests 100000000; upstream provider {{ server 127.0.0.1:{provider}; keepalive 256; "
        "keepalive_requests 100000000; }\n"
        f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://provider; proxy_http_version 1.1; "
        'proxy_set_header Connection ""; proxy_buffering off; } } }\n'
    )
    return Start([program, "-c", str(config)])


#: The one that records first.
STARTS: Final[dict[str, Callable[[str, Path, int, int], Start]]] = {
    "reef-infra": _reef_infra,
    "mlflow": _mlflow,
    "litellm": _litellm,
    "nginx": _nginx,
}

if __name__ == "__main__":
    sys.exit(main())
