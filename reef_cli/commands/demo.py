"""`reef demo`: the main job on this machine, for real: serve, record, rate, show. No canned output anywhere.

Every step uses what a user's own agent would use: the agent token, over TCP. A step that fails makes the exit code 1.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from adapters import apply, pi
from adapters.plan import Choice, InstallPlan, find_node
from daemon.core.errors import ExitCode, NotFound, ReefError
from daemon.core.paths import Home, home
from reef_cli import conversation, diagnostics, output
from reef_cli.client import Client, segment
from reef_cli.commands.models import fetch
from reef_cli.lifecycle import ensure_daemon
from reef_cli.parameters import AsJson, Help
from reef_cli.streaming import Dialect, Speaker, path_of

SCENARIO = "demo"
_PROMPTS: dict[Dialect, str] = {
    "chat": "In one short sentence: what is a coral reef?",
    "messages": "Name three animals that live on a coral reef.",
}
_PI_PROMPT = "Say hello in one short sentence."
_MAX_TOKENS = 80
_PI_SECONDS = 900.0


def demo(
    *,
    no_pi: Annotated[bool, Help("Leave out the real coding agent.", "--no-pi")] = False,
    as_json: AsJson = False,
) -> int:
    """Starts the daemon, fetches the default model if there is none, asks it through both protocols, lets the coding
    agent Pi ask it too (installed privately, about 400 MB with its Node.js, kept in Reef's home), rates an answer, and
    shows what was recorded. What it records is in the scenario "demo".
    """
    show = _Show(quiet=as_json)
    run = _Run(home(), show)
    steps: list[tuple[str, str, Callable[[], dict[str, Any]]]] = [
        ("daemon", "The daemon, started when it is needed", run.daemon),
        ("model", "A model on this machine", run.model),
        ("chat", f"OpenAI's protocol: POST {path_of('chat')}, streamed", lambda: run.ask("chat")),
        ("messages", f"Anthropic's protocol: POST {path_of('messages')}, streamed", lambda: run.ask("messages")),
        *([] if no_pi else [("pi", f"A real coding agent: Pi {pi.PI.version}", run.pi)]),
        ("report", "Your feedback, over the API", run.rate),
        ("trace", "What was recorded", run.trace),
    ]
    results = [_step(number, *step, show=show) for number, step in enumerate(steps, 1)]
    failed = [result["step"] for result in results if not result["ok"]]
    if as_json:
        output.json({"ok": not failed, "steps": results})
    else:
        _ending(failed)
    return ExitCode.FAILED if failed else ExitCode.OK


def _step(number: int, name: str, title: str, work: Callable[[], dict[str, Any]], *, show: "_Show") -> dict[str, Any]:
    show(output.bold(f"{number}  {title}"))
    try:
        return {"step": name, "ok": True, **work()}
    except ReefError as error:
        show(f"   failed: {output.visible(error.message)}")
        if error.hint:
            show(f"   hint: {output.visible(error.hint)}")
        return {"step": name, "ok": False, **error.envelope()}
    finally:
        show("")


def _ending(failed: list[str]) -> None:
    if failed:
        output.line(f"Failed: {', '.join(failed)}. Next: reef doctor")
        return
    output.line(output.bold("Next"))
    output.line('   eval "$(reef env)"     then start your own agent in this shell: it now talks to Reef')
    output.line("   reef status            what runs")
    output.line("   reef traces show       the last conversation")
    output.line("   reef good | reef bad   after an answer; reef note 'why'; reef undo")


class _Show:
    """The story on stdout, or nothing where JSON is the answer."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, text: str) -> None:
        if not self._quiet:
            output.line(text)

    def piece(self, text: str) -> None:
        if not self._quiet:
            output.raw(output.visible(text))


class _Run:
    """The steps, each with the facts it found; later ones need what earlier ones left here."""

    def __init__(self, place: Home, show: _Show) -> None:
        self._place = place
        self._show = show
        self._client: Client | None = None
        self._speaker: Speaker | None = None
        self._receipts: list[str] = []
        #: The default engine where it is a provider: its name, and the dialect that it speaks.
        self._provider: tuple[str, Dialect] | None = None

    def daemon(self) -> dict[str, Any]:
        client = ensure_daemon(self._place)
        status = client.get("/reef/status")
        self._client = client
        remote = client.get("/reef/config")["engines"].get(status["default_engine"])
        if remote is not None:
            self._provider = status["default_engine"], "chat" if remote["api"] == "openai" else "messages"
        self._speaker = Speaker(status["url"], self._place.agent_token.read_text().strip(), SCENARIO)
        self._show(f"   {status['url']}/v1, pid {status['pid']}, home {output.visible(status['home'])}")
        return {"url": status["url"], "pid": status["pid"]}

    def model(self) -> dict[str, Any]:
        client = self._need_client()
        if self._provider is not None:
            return self._skip(f"the configuration says that {self._provider[0]!r} answers")
        listed = client.get("/reef/models")["items"]
        model = next((model for model in listed if model["active"]), None)
        if model is None:
            model = fetch(client, "default", use=True)
        facts = f"{model['name']}, {output.size(model['bytes'])}, licence {model['licence']}"
        self._show(f"   {output.visible(facts)}, sha256 {model['sha256'][:16]}…")
        return {"model": model}

    def ask(self, dialect: Dialect) -> dict[str, Any]:
        if self._speaker is None:
            raise NotFound("there is no daemon to ask", hint="reef doctor")
        if self._provider is not None and self._provider[1] != dialect:
            return self._skip(f"{self._provider[0]!r} speaks the other protocol")
        self._show(f"   > {_PROMPTS[dialect]}")
        self._show.piece("   ")
        try:
            answer = self._speaker.ask(
                dialect,
                _PROMPTS[dialect],
                max_tokens=_MAX_TOKENS,
                on_text=lambda text: self._show.piece(_indented(text)),
            )
        finally:
            self._show("")
        if not answer.receipt:
            raise NotFound("the answer came without a receipt", hint="reef logs")
        self._receipts.append(answer.receipt)
        self._show(f"   receipt {answer.receipt}")
        return {"receipt": answer.receipt, "answer": answer.text}

    def pi(self) -> dict[str, Any]:
        client = self._need_client()
        node = find_node()
        if node is None:
            return self._skip("there is no Node.js with npm on this machine")
        plan = pi.Pi().plan(self._place, node, Choice())
        if not apply.is_installed(plan):  # what a person chose for theirs stays
            apply.apply(plan, diagnostics.say)
        self._show(f"   $ reef-pi -p {_PI_PROMPT!r}")
        answer = _pi_answer(plan)
        for line in output.visible(answer).splitlines():
            self._show(f"   {line}")
        session = client.get("/reef/sessions", scenario=SCENARIO, limit=1)["items"][0]
        if session["agent"] != "pi":
            raise NotFound("Pi answered, but its exchange is not recorded", hint="reef logs")
        self._show(f"   session {session['id']}, {output.count(session['turns'], 'turn')}")
        return {"version": plan.version, "answer": answer, "session": session["id"], "turns": session["turns"]}

    def rate(self) -> dict[str, Any]:
        receipt = self._first_receipt()
        report = self._need_client().post("/reef/report", {"score": 1.0, "references": [receipt]}, scope=SCENARIO)
        self._show(f'   POST /reef/report {{"score": 1.0, "references": ["{receipt}"]}}')
        return {"report": report}

    def trace(self) -> dict[str, Any]:
        client, receipt = self._need_client(), self._first_receipt()
        trace = client.get(f"/reef/traces/{segment(receipt)}")
        for line in conversation.lines(trace):
            self._show(f"   {line}")
        record = client.get(f"/reef/records/{segment(receipt)}")
        sizes = [len(client.content(f"/reef/records/{segment(receipt)}/{side}")) for side in ("request", "response")]
        counts = client.get("/reef/status")["counts"]
        self._show("")
        self._show(f"   {receipt}: {sizes[0]} bytes asked, {sizes[1]} answered, kept byte for byte")
        self._show(f"   weights {record['weights'] or 'of a provider, unknown'}")
        total = ", ".join(output.count(counts[noun], noun[:-1]) for noun in ("records", "sessions", "reports"))
        self._show(f"   {total} in {output.visible(str(self._place.database))}")
        return {"record": record, "request_bytes": sizes[0], "response_bytes": sizes[1], "counts": counts}

    def _skip(self, why: str) -> dict[str, Any]:
        self._show(f"   left out: {output.visible(why)}")
        return {"skipped": why}

    def _need_client(self) -> Client:
        if self._client is None:
            raise NotFound("there is no daemon to ask", hint="reef doctor")
        return self._client

    def _first_receipt(self) -> str:
        if not self._receipts:
            raise NotFound("nothing was answered", hint="reef doctor")
        return self._receipts[0]


def _pi_answer(plan: InstallPlan) -> str:
    """Run Pi on one prompt in an empty repository; what it printed."""
    with tempfile.TemporaryDirectory(prefix="reef-demo-") as directory:
        work = Path(directory)
        (work / ".git").mkdir()
        try:
            done = subprocess.run(
                [str(plan.home / plan.wrapper), "-p", _PI_PROMPT],
                cwd=work,
                env={**os.environ, "REEF_SCENARIO": SCENARIO},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_PI_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ReefError(f"Pi has not answered for {_PI_SECONDS:.0f} s", hint="reef status") from error
    if done.returncode != 0 or not done.stdout.strip():
        words = (done.stderr or done.stdout).strip()[-500:]
        raise ReefError(f"Pi ended with {done.returncode}: {words or 'it said nothing'}", hint="reef logs")
    return done.stdout.strip()


def _indented(text: str) -> str:
    return text.replace("\n", "\n   ")
