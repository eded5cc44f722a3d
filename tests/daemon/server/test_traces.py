"""A trace page by page, and what changed from one request to the next."""

import base64
import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from daemon.core.paths import Home
from tests.fakes.daemon import RunningDaemon, running_daemon
from tests.fakes.provider import Turn, running_provider

COVERS = ("daemon/server/comparing.py", "daemon/store/compare.py")
CHAT = "/v1/chat/completions"


TURNS = (Turn("an answer"),)


def said(*texts: str) -> list[dict[str, Any]]:
    """User and assistant in turn, after a system prompt."""
    roles = ("user", "assistant")
    return [{"role": "system", "content": "s"}, *({"role": roles[n % 2], "content": t} for n, t in enumerate(texts))]


def send(daemon: RunningDaemon, session: str, messages: list[dict[str, Any]], **fields: Any) -> str:
    body = {"model": "m", "messages": messages, **fields}
    status, told, raw = daemon.post(CHAT, body, x_session_id=session)
    assert status == 200, raw
    return told["x-reef-agent-record-id"]


def conversation(daemon: RunningDaemon, session: str, turns: int, text: str = "question") -> list[str]:
    history: list[str] = []
    receipts = []
    for n in range(turns):
        history.append(f"{text} {n}")
        receipts.append(send(daemon, session, said(*history)))
        history.append("an answer")
    return receipts


def shown(page: dict[str, Any]) -> list[str]:
    return [entry["record"]["receipt"] for entry in page["records"]]


def test_a_trace_is_read_from_its_end_and_from_its_beginning(daemon: RunningDaemon) -> None:
    receipts = conversation(daemon, "paged", 5)
    last = daemon.get(f"/reef/traces/{receipts[0]}?limit=2")
    assert (shown(last), last["after"]) == (receipts[3:], None)
    middle = daemon.get(f"/reef/traces/{receipts[0]}?limit=2&before={last['before']}")
    assert shown(middle) == receipts[1:3]
    first = daemon.get(f"/reef/traces/{receipts[0]}?limit=2&before={middle['before']}")
    assert (shown(first), first["before"]) == (receipts[:1], None)
    assert shown(daemon.get(f"/reef/traces/{receipts[0]}?limit=2&after={first['after']}")) == receipts[1:3]
    start = daemon.get(f"/reef/traces/{receipts[0]}?limit=2&after=0")
    assert (shown(start), start["before"], start["session"]["records"]) == (receipts[:2], None, 5)
    end = daemon.get(f"/reef/traces/{receipts[0]}?limit=9&after={start['after']}")
    assert (shown(end), end["after"]) == (receipts[2:], None)
    nothing = daemon.get(f"/reef/traces/{receipts[0]}?after={last['records'][-1]['record']['seq']}")
    assert (nothing["records"], nothing["after"]) == ([], None)


def test_a_page_is_bounded_in_bytes(daemon: RunningDaemon) -> None:
    receipts = conversation(daemon, "large", 4, "x" * 400_000)
    page = daemon.get(f"/reef/traces/{receipts[0]}")
    assert shown(page) == receipts[2:]
    assert shown(daemon.get(f"/reef/traces/{receipts[0]}?before={page['before']}")) == receipts[:2]
    assert shown(daemon.get(f"/reef/traces/{receipts[0]}?after=0")) == receipts[:2]
    alone = conversation(daemon, "alone", 1, "y" * 3_000_000)
    assert shown(daemon.get(f"/reef/traces/{alone[0]}")) == alone


def test_images_are_named_with_their_size_and_never_sent(daemon: RunningDaemon) -> None:
    picture = base64.b64encode(b"\x89PNG" + bytes(9997)).decode()
    parts = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}]
    receipt = send(daemon, "image", [{"role": "user", "content": parts}])
    status, text = daemon.control("GET", f"/reef/traces/{receipt}")
    (part,) = text["records"][0]["new_messages"][0]["parts"]
    assert status == 200
    assert (part["media_type"], part["bytes"], part["source"][:7]) == ("image/png", 10001, "sha256:")
    assert picture[:40] not in str(text)


def test_images_of_a_result_are_named_too(daemon: RunningDaemon) -> None:
    picture = base64.b64encode(bytes(300)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": picture}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": source}]}
    call = {"type": "tool_use", "id": "t", "name": "shot", "input": {}}
    messages = [
        {"role": "user", "content": "look"}, {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]  # fmt: skip
    _, told, _ = daemon.post("/v1/messages", {"model": "m", "max_tokens": 9, "messages": messages})
    (*_, last) = daemon.get(f"/reef/traces/{told['x-reef-agent-record-id']}")["records"][0]["new_messages"]
    assert [(image["media_type"], image["bytes"]) for image in last["parts"][0]["images"]] == [("image/png", 300)]


def test_pictures_are_kept_once_and_in_no_list(reef_home: Home) -> None:
    """B229, https://github.com/earendil-works/pi/issues/9613: a session of pictures filled the memory when opened.

    Sent again with each turn, and by another session; each is stored once, and what is shown of a session does not grow
    with them.
    """
    turns, size = 12, 100_000
    messages: list[dict[str, Any]] = [{"role": "user", "content": "look"}]
    with running_provider((Turn("an answer"),)) as provider, running_daemon(reef_home, provider.config()) as running:
        for n in range(turns):
            data = base64.b64encode(random.Random(n).randbytes(size)).decode()
            source = {"type": "base64", "media_type": "image/png", "data": data}
            call = {"type": "tool_use", "id": f"t{n}", "name": "shot", "input": {}}
            result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": [{"type": "image", "source": source}]}
            messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
            body = {"model": "m", "max_tokens": 9, "messages": messages}
            assert running.post("/v1/messages", body, x_session_id="pictures")[0] == 200
        again = [{"role": "user", "content": "look once more"}, *messages[1:]]
        body = {"model": "m", "max_tokens": 9, "messages": again}
        assert running.post("/v1/messages", body, x_session_id="again")[0] == 200
        _, session = running.get("/reef/sessions")["items"]
        assert session["records"] == turns
        for path in ("sessions", "records", "search?q=look", f"traces/{session['id']}"):
            told = json.dumps(running.get(f"/reef/{path}"))
            assert len(told) < turns * 4000, path
            assert data[:40] not in told
    assert turns * size < reef_home.database.stat().st_size < 1.4 * turns * size


def test_many_who_read_a_large_session_at_once_get_a_page_each(daemon: RunningDaemon) -> None:
    """B232, https://github.com/SkillfulAgents/SuperAgent/pull/749: each read all of it, over and over."""
    receipts = conversation(daemon, "reconnects", 12, "z" * 300_000)

    def read() -> list[str]:
        found: list[str] = []
        after = "0"
        while after is not None:
            status, page = daemon.control("GET", f"/reef/traces/{receipts[0]}?after={after}")
            assert status == 200
            assert len(json.dumps(page)) < 1 << 21
            found += shown(page)
            after = page["after"]
        return found

    with ThreadPoolExecutor(16) as readers:
        assert all(found == receipts for found in readers.map(lambda _: read(), range(32)))


def changes(daemon: RunningDaemon, receipt: str) -> Any:
    return daemon.get(f"/reef/records/{receipt}/changes")


def test_messages_that_were_added(daemon: RunningDaemon) -> None:
    first, second = conversation(daemon, "added", 2)
    assert changes(daemon, first)["previous"] is None
    told = changes(daemon, second)
    assert (told["previous"], told["kept"], told["broken"], told["settings"]) == (first, 3, None, [])
    assert told["added"] == [{"role": "user", "characters": 10, "begins": "question 1"}]


def test_a_message_in_the_middle_that_was_rewritten(daemon: RunningDaemon) -> None:
    long = "a result of a tool that an agent cuts later on " * 20
    send(daemon, "rewritten", said("one"))
    before = send(daemon, "rewritten", said("one", "an answer", long))
    receipt = send(daemon, "rewritten", said("one", "an answer", long[:400] + "[cut]", "an answer", "go on"))
    told = changes(daemon, receipt)
    broken = told["broken"]
    assert (told["previous"], told["kept"]) == (before, 3)
    assert (broken["at"], broken["message"], broken["role"], broken["offset"]) == ("message", 3, "user", 400)
    assert broken["was"].startswith(long[376:400])
    assert broken["now"] == long[376:400] + "[cut]"
    assert 0 < broken["tokens"] < daemon.get(f"/reef/records/{before}")["prompt_tokens"]
    assert [message["begins"] for message in told["added"]] == ["an answer", "go on"]


def test_an_answer_that_came_back_otherwise(daemon: RunningDaemon) -> None:
    send(daemon, "altered", said("one"))
    told = changes(daemon, send(daemon, "altered", said("one", "another answer", "two")))
    assert (told["broken"]["at"], told["broken"]["was"], told["kept"]) == ("answer", "an answer", 2)


def test_who_goes_back_breaks_nothing(daemon: RunningDaemon) -> None:
    conversation(daemon, "back", 2)
    told = changes(daemon, send(daemon, "back", said("question 0")))
    assert (told["kept"], told["broken"], told["added"]) == (2, None, [])


def test_other_tools_and_settings(daemon: RunningDaemon) -> None:
    function = {"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}
    send(daemon, "tools", said("one"), temperature=0)
    told = changes(daemon, send(daemon, "tools", said("one", "an answer", "two"), temperature=1, tools=[function]))
    assert (told["broken"]["at"], told["broken"]["was"], told["broken"]["message"]) == ("tools", "", None)
    assert [(one["name"], one["was"], one["now"]) for one in told["settings"]] == [("temperature", "0", "1")]


def test_marks_of_a_cache_change_nothing_and_a_system_prompt_does(daemon: RunningDaemon) -> None:
    def ask(system: str, **mark: Any) -> str:
        blocks = [{"type": "text", "text": system, **mark}]
        body = {"model": "m", "max_tokens": 9, "system": blocks, "messages": [{"role": "user", "content": "hello"}]}
        return daemon.post("/v1/messages", body, x_session_id="system")[1]["x-reef-agent-record-id"]

    ask("the date is 1 May")
    assert changes(daemon, ask("the date is 1 May", cache_control={"type": "ephemeral"}))["broken"] is None
    broken = changes(daemon, ask("the date is 2 May"))["broken"]
    assert (broken["at"], "1 May" in broken["was"], "2 May" in broken["now"]) == ("system", True, True)


def test_a_request_that_names_the_answer_it_goes_on_from(daemon: RunningDaemon) -> None:
    path = "/v1/responses"
    _, told, raw = daemon.post(path, {"model": "m", "input": [{"role": "user", "content": "one"}]})
    body = {"model": "m", "input": [{"role": "user", "content": "two"}], "previous_response_id": json.loads(raw)["id"]}
    _, second, _ = daemon.post(path, body)
    found = changes(daemon, second["x-reef-agent-record-id"])
    assert (found["previous"], found["chained"]) == (told["x-reef-agent-record-id"], True)
    assert (found["broken"], [one["begins"] for one in found["added"]]) == (None, ["two"])


def test_no_such_record(daemon: RunningDaemon) -> None:
    assert daemon.control("GET", "/reef/records/rec_nobody/changes")[0] == 404


# -- what recorders of others lost -------------------------------------------------------------------


def imported(daemon: RunningDaemon, id: str, **payload: Any) -> Any:
    """A record from elsewhere; its entry in the trace."""
    envelope = {"agent_record_id": id, "request_type": "inference", "payload": {"model": "m", **payload}}
    status, told = daemon.control("POST", "/reef/records", envelope)
    assert status == 200, told
    return daemon.get(f"/reef/traces/{id}")["records"][-1]


def test_usage_with_nulls_and_unknown_keys_loses_no_answer(daemon: RunningDaemon) -> None:
    """B151, https://github.com/langfuse/langfuse/issues/6882: the whole answer was lost."""
    usage: dict[str, Any] = {
        "input_tokens": 7,
        "output_tokens": 3,
        "server_tool_use": None,
        "cache_creation": {"later": [None, {}]},
    }
    response = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "usage": usage,
        "content": [{"type": "text", "text": "it is all here"}],
    }  # fmt: skip
    messages = [{"role": "user", "content": "hello"}]
    entry = imported(daemon, "nulls", max_tokens=9, system="s", messages=messages, response=response)
    assert entry["answer"]["parts"][0]["text"] == "it is all here"
    assert (entry["record"]["prompt_tokens"], entry["record"]["completion_tokens"]) == (7, 3)


def test_a_tool_call_keeps_its_name_and_arguments(daemon: RunningDaemon) -> None:
    """B152, https://github.com/langfuse/langfuse/issues/10623: only the reason why it stopped was shown."""
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    response = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    entry = imported(daemon, "calls", messages=[{"role": "user", "content": "hello"}], response=response)
    (part,) = entry["answer"]["parts"]
    assert (part["type"], part["name"], part["arguments"]) == ("tool_use", "bash", '{"command": "ls"}')


@pytest.mark.parametrize("message", [{"content": "no role"}, {"role": None, "content": "x"}, {"role": "wizard"}, {}, 3])
def test_messages_of_no_known_role_are_shown(daemon: RunningDaemon, message: Any) -> None:
    """B196, https://github.com/microsoft/agent-lightning/issues/425: KeyError 'role'."""
    known = [{"role": role, "content": "x"} for role in ("developer", "tool", "function")]
    response = {"choices": [{"message": {"role": "assistant", "content": "an answer"}}]}
    id = f"odd-{len(str(message))}"
    entry = imported(daemon, id, messages=[*known, message, {"role": "user", "content": "x"}], response=response)
    assert entry["answer"]["parts"][0]["text"] == "an answer"
    assert len(entry["new_messages"]) == 5
    assert changes(daemon, id)["previous"] is None


def test_what_was_answered_is_there_although_the_daemon_is_told_to_end_at_once(reef_home: Home) -> None:
    """B154, https://github.com/langfuse/langfuse/issues/2214: what waited to be flushed was lost."""
    with running_provider((Turn("an answer"),)) as provider:
        with running_daemon(reef_home, provider.config()) as first:
            receipt = send(first, "ended", said("just before the end"))
            first.process.terminate()
        with running_daemon(reef_home, provider.config()) as second:
            (entry,) = second.get(f"/reef/traces/{receipt}")["records"]
    assert entry["answer"]["parts"][0]["text"] == "an answer"
