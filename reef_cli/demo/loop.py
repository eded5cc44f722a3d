"""The demo's steps: the whole loop over the daemon's own API, each with the facts it measured.

A scenario of its own a run, so that it starts from nothing and touches nobody's releases. Only the person is scripted.
"""

import time
from dataclasses import replace
from typing import Final

from daemon.core.client import Client, segment
from daemon.core.errors import NotFound, ReefError
from daemon.core.paths import Home
from reef_cli import output
from reef_cli.commands.models import fetch
from reef_cli.demo import person
from reef_cli.demo.person import NOTE, Traffic, lines
from reef_cli.demo.speaker import Answer, Speaker
from reef_cli.demo.story import Facts, Story
from reef_cli.lifecycle import ensure_daemon
from reef_cli.waiting import followed

_SWAP_SECONDS: Final = 60.0
_SHOWN: Final = 3


class Loop:
    """The steps in order; later ones need what earlier ones left here."""

    def __init__(self, place: Home, story: Story, seed: int) -> None:
        self.scenario = f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
        #: The rule and the weights are judged apart, each against the same beginning.
        self._rule_scenario = f"{self.scenario}-rule"
        self.harness: Facts = {}
        self.weights: Facts = {}
        self._place = place
        self._story = story
        self._seed = seed
        self._questions = lines("questions.txt")
        self._asked: list[Answer] = []
        self._before: list[Facts] = []

    def serve(self) -> Facts:
        """The daemon and a model of this machine."""
        self._client = ensure_daemon(self._place)
        status = self._client.get("/reef/status")
        if status["default_engine"] != "embedded":
            raise NotFound(
                f"the configuration says that {status['default_engine']!r} answers; the demo trains the model inside",
                hint="REEF_HOME=$(mktemp -d) reef demo",
            )
        self._speaker = Speaker(status["url"], self._place.agent_token.read_text().strip(), self.scenario)
        listed = self._client.get("/reef/models")["items"]
        model = next((model for model in listed if model["active"]), None) or fetch(self._client, "default", use=True)
        self._story.say(f"{status['url']}/v1, pid {status['pid']}, scenario {self.scenario}")
        self._story.say(f"{model['name']}, {output.size(model['bytes'])}, licence {model['licence']}")
        return {"url": status["url"], "scenario": self.scenario, "model": model["name"], "sha256": model["sha256"]}

    def ask(self) -> Facts:
        """The person's ordinary work, recorded."""
        self._asked = person.ask(self._speaker, self._questions)
        for question, answer in list(zip(self._questions, self._asked, strict=True))[:_SHOWN]:
            self._story.quote(">", question)
            self._story.quote(" ", answer.text)
        self._story.say(f"{len(self._asked)} questions asked, every answer recorded under a receipt")
        return {"asked": len(self._asked), "receipts": [answer.receipt for answer in self._asked]}

    def measure_before(self) -> Facts:
        """Held-out tasks and facts to keep, measured on what serves now."""
        held_out = [
            {"prompt": prompt, "check": {"form": "one_sentence"}, "set": "gate", "max_tokens": person.MAX_TOKENS}
            for prompt in lines("held_out.txt")
        ]
        facts = [task | {"set": "regression"} for task in person.tasks("regression.yaml")]
        for scenario in (self.scenario, self._rule_scenario):
            self._client.post("/reef/tasks", {"tasks": held_out + facts}, scope=scenario)
        self._before = self._measure(self.scenario)
        self._story.say(f"{len(held_out)} other questions are held out: nothing below ever learns from them")
        return self._told(self._before)

    def feed_back(self) -> Facts:
        """One typed note and a few marks."""
        note = self._report({"feedback": NOTE, "references": [self._asked[-1].receipt]}, self.scenario)
        self._story.say(f"the person (scripted) types one note on the last answer: {NOTE!r}")
        longest = sorted(self._asked, key=lambda answer: -len(answer.text))[:_SHOWN]
        marks = [self._report({"score": 0.0, "references": [item.receipt]}, self.scenario) for item in longest]
        self._story.say(f"and marks {len(marks)} long answers bad; no answer is corrected, no example given")
        return {"note": note, "marks": marks}

    def try_harness(self) -> Facts:
        """The note as a rule: no model needed to make it, the gate to judge it."""
        speaker = replace(self._speaker, scenario=self._rule_scenario)
        receipt = person.ask(speaker, self._questions[:1])[0].receipt
        self._report({"feedback": NOTE, "references": [receipt]}, self._rule_scenario)
        release = self._judged(self._run("playbook", {}, self._rule_scenario), self._rule_scenario)
        gate = release["gate"]
        self.harness = {
            "before": gate["incumbent_passed"],
            "after": gate["candidate_passed"],
            "of": len(gate["pairs"]),
            "verdict": gate["verdict"],
        }
        if release["state"] == "released":
            told = self._told(self._measure(self._rule_scenario))
            before = self._told_quietly(self._before)
            self.harness |= {"before": before["passed"], "after": told["passed"], "of": told["of"]}
        return {"release": _short(release), **self.harness}

    def try_weights(self) -> Facts:
        """The note into the weights, judged, released and swapped in while somebody goes on asking."""
        with Traffic(self._speaker, self._questions) as traffic:
            release = self._judged(self._run("sft", {"seed": self._seed}, self.scenario), self.scenario)
            released = release["state"] == "released"
            if released and not traffic.wait_for(release["id"], _SWAP_SECONDS):
                raise ReefError(f"{release['id']} has not answered within {_SWAP_SECONDS:.0f} s", hint="reef logs")
        served = ", ".join(f"{count} by {name}" for name, count in traffic.answered.items())
        self._story.say(f"somebody went on asking all the while: {served}; {len(traffic.failed)} failed")
        if traffic.failed:
            raise ReefError(f"{len(traffic.failed)} requests failed: {traffic.failed[0]}", hint="reef logs")
        self.weights = {"verdict": release["gate"]["verdict"]}
        return {"release": _short(release), "served": dict(traffic.answered), **self.weights}

    def measure_after(self) -> Facts:
        """The same held-out prompts again, on what serves now."""
        after = self._measure(self.scenario)
        told = self._told(after)
        before = self._told_quietly(self._before)
        self.weights = {"before": before["passed"], "after": told["passed"], "of": told["of"], **self.weights}
        answers = {item["task"]: item["answer"] for item in after}
        for item in [item for item in self._before if item["set"] == "gate"][:_SHOWN]:
            self._story.quote(">", item["prompt"])
            self._story.quote("  before:", item["answer"])
            self._story.quote("  after: ", answers[item["task"]])
        harness = self.harness
        self._story.table(
            ("", "before", "after", "verdict"),
            (
                ("weights", _share(self.weights, "before"), _share(self.weights, "after"), self.weights["verdict"]),
                ("harness", _share(harness, "before"), _share(harness, "after"), harness["verdict"]),
                ("facts kept", f"{before['facts']}/{before['facts_of']}", f"{told['facts']}/{told['facts_of']}", ""),
            ),
        )
        return told

    def roll_back(self) -> Facts:
        """One step back, then forward again: every release stays in the chain."""
        chain = self._client.get("/reef/releases", scenario=self.scenario)["items"]
        if not chain:
            self._story.say("nothing was released, so there is nothing to roll back")
            return {"skipped": "nothing was released"}
        question = self._questions[0]
        undone = self._client.post("/reef/releases/rollback", {}, scope=self.scenario)
        answer = person.ask(self._speaker, [question])[0]
        self._story.say(f"$ reef releases rollback --scenario {self.scenario}")
        self._story.quote(f"{undone['id']} answers:", answer.text)
        again = self._client.post("/reef/releases/rollback", {"to": chain[0]["id"]}, scope=self.scenario)
        answer_again = person.ask(self._speaker, [question])[0]
        self._story.say(f"$ reef releases rollback --to {chain[0]['id']} --scenario {self.scenario}")
        self._story.quote(f"{again['id']} answers:", answer_again.text)
        if (answer.release, answer_again.release) != (undone["id"], again["id"]):
            raise ReefError(f"{answer.release} and {answer_again.release} answered", hint="reef logs")
        return {"rolled_back": undone["id"], "again": again["id"]}

    # -- pieces ---------------------------------------------------------------------------------------

    def _report(self, body: Facts, scenario: str) -> str:
        return str(self._client.post("/reef/report", body, scope=scenario)["agent_record_id"])

    def _measure(self, scenario: str) -> list[Facts]:
        """Every task of a scenario, answered by its head: one JSON line each. An answer that did not come is no wrong
        one: raises ReefError.
        """
        items = list(self._client.lines("/reef/tasks/run", {"scenario": scenario}))
        if missing := next((item for item in items if "error" in item), None):
            error = missing["error"]
            raise ReefError(f"{missing['prompt']!r} got no answer: {error['message']}", hint=error["hint"])
        return items

    def _told(self, items: list[Facts]) -> Facts:
        told = self._told_quietly(items)
        self._story.say(
            f"held out, answers that end and are one sentence: {told['passed']} of {told['of']}"
            f"; facts right: {told['facts']} of {told['facts_of']}"
        )
        return told

    @staticmethod
    def _told_quietly(items: list[Facts]) -> Facts:
        gate = [item["passed"] for item in items if item["set"] == "gate"]
        facts = [item["passed"] for item in items if item["set"] == "regression"]
        return {"passed": sum(gate), "of": len(gate), "facts": sum(facts), "facts_of": len(facts)}

    def _run(self, recipe: str, config: Facts, scenario: str) -> Facts:
        """Start a recipe's job and follow it to its end."""
        self._story.say(f"$ reef recipes run {recipe} --scenario {scenario}")
        job: Facts = self._client.post("/reef/jobs", {"recipe": recipe, "config": config}, scope=scenario)
        job = followed(self._client, job, self._story.say)
        if job["state"] != "done":
            raise ReefError(f"{job['id']} {job['state']}: {job['error']}", hint=f"reef jobs show {job['id']}")
        return job

    def _judged(self, job: Facts, scenario: str) -> Facts:
        """The job's candidate with its evidence, pair by pair."""
        if job["release_id"] is None:
            raise ReefError(f"{job['recipe']} proposed nothing: {job['message']}", hint=f"reef jobs show {job['id']}")
        release = self._release(job["release_id"], scenario)
        gate = release["gate"]
        self._story.say(f"candidate: {release['reason']}")
        marks = "".join(_mark(pair) for pair in gate["pairs"])
        self._story.say(f"gate, pair by pair (+ only the candidate passes, - only what serves, . same): {marks}")
        told = sorted(gate["pairs"], key=lambda pair: _mark(pair) == ".")  # those that decide first
        for pair in told[:_SHOWN]:
            self._story.quote(">", pair["prompt"])
            self._story.quote(f"  serving   ({_passes(pair['incumbent'])}):", pair["incumbent_answer"], 80)
            self._story.quote(f"  candidate ({_passes(pair['candidate'])}):", pair["candidate_answer"], 80)
        self._story.say(f"verdict: {gate['verdict']}. {gate['reason']}")
        if release["state"] == "pending":
            release = self._client.post(f"/reef/releases/{segment(release['id'])}/approve", {}, scope=scenario)
            self._story.say("the policy is to ask a person first: the person (scripted) approves")
        self._story.say(f"{release['state']}: {release['id']}")
        if release["state"] == "rejected":
            force = " --force" if gate["verdict"] == "reject" else ""
            self._story.say("what serves stays as it is; to release the candidate all the same, marked unproven:")
            self._story.say(f"$ reef releases approve {release['id']}{force} --scenario {scenario}")
        return self._release(str(release["id"]), scenario)

    def _release(self, name: str, scenario: str) -> Facts:
        found: Facts = self._client.get(f"/reef/releases/{segment(name)}", scenario=scenario)
        return found

    _client: Client
    _speaker: Speaker


def _short(release: Facts) -> Facts:
    return {key: release[key] for key in ("id", "state", "number", "reason")}


def _share(facts: Facts, which: str) -> str:
    return f"{facts[which]}/{facts['of']}"


def _passes(passed: bool) -> str:
    return "passes" if passed else "fails"


def _mark(pair: Facts) -> str:
    return "." if pair["incumbent"] == pair["candidate"] else "+" if pair["candidate"] else "-"
