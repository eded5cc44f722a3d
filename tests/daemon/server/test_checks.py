"""An installed agent's first request: whether it came, in every dialect, at the cost of nothing."""

from http.client import HTTPConnection

from daemon.core.paths import Home
from daemon.server.proxy import ROUTES
from tests.fakes.daemon import running_daemon


def test_it_is_answered_without_a_model_and_seen(reef_home: Home) -> None:
    with running_daemon(reef_home) as daemon:
        connection = HTTPConnection("127.0.0.1", daemon.port, timeout=60)
        for number, path in enumerate(ROUTES):
            run = f"check_{number}"
            assert not daemon.get(f"/reef/harness/check?run={run}")["seen"]
            headers = {
                "authorization": f"Bearer {daemon.agent_token}",
                "content-type": "application/json",
                "x-reef-tag-run": run,
            }
            connection.request("POST", path, b'{"model": "default", "stream": true, "messages": []}', headers)
            response = connection.getresponse()
            assert response.status == 400
            assert "it was a check" in response.read().decode()
            seen = daemon.get(f"/reef/harness/check?run={run}")
            assert (seen["run"], seen["seen"]) == (run, True)
            assert "holds 8,192 tokens" in seen["hint"]
        connection.request("POST", path, b"{}", {"x-reef-tag-run": "check_9"})
        assert connection.getresponse().status == 401
        connection.close()
        assert not daemon.get("/reef/harness/check?run=check_9")["seen"]
        assert daemon.get("/reef/records")["items"] == []
