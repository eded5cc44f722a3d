"""The bench's own provider and load generator: what they count is what happened."""

import json
import shutil
import sys
import urllib.request
from pathlib import Path

import pytest

from bench import traffic
from bench.figures import Figure, write

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None or shutil.which("taskset") is None,
    reason="Linux with a C compiler",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bench")
    traffic.compiled(place)
    return place


def test_whole_answers_and_streams_are_counted(folder: Path) -> None:
    with traffic.upstream(folder) as direct:
        whole = traffic.load(folder, direct, traffic.body(folder, 100_000), connections=3, requests=20)
        stream = traffic.load(folder, direct, traffic.body(folder, 2000, stream=9), connections=2, requests=5)
    assert (whole["status"], whole["errors"], whole["chunk"]) == (0, 0, 0)
    assert whole["rps"] > 0 < whole["p50"] <= whole["p99"]
    assert (stream["status"], stream["errors"]) == (0, 0)
    assert 0 < stream["chunk"] <= stream["chunk_p99"]


def test_what_is_sent_goes_on_from_what_was_answered(folder: Path) -> None:
    file = traffic.body(folder, 2000)
    messages = json.loads(file.read_text())["messages"]
    before = file.with_suffix(".before").read_bytes()
    with traffic.upstream(folder) as direct:
        asked = urllib.request.Request(f"http://127.0.0.1:{direct.port}/v1/chat/completions", before)
        with urllib.request.urlopen(asked) as response:
            answer = json.load(response)["choices"][0]["message"]
    assert messages[:-2] == json.loads(before)["messages"]
    assert messages[-2] == answer
    assert 1000 < file.stat().st_size < 3000


def test_an_answer_that_is_no_success_ends_the_bench(folder: Path) -> None:
    """A figure of requests that failed would be the best of all."""
    with traffic.upstream(folder) as direct:
        other = traffic.Server("other", traffic.free_port())
        with pytest.raises(SystemExit, match="other"):
            traffic.load(folder, other, traffic.body(folder, 2000), connections=1, requests=1)
        assert traffic.load(folder, direct, traffic.body(folder, 2000), connections=1, requests=1)["errors"] == 0


def test_a_figure_is_held_to_its_bound_from_the_right_side(tmp_path: Path) -> None:
    assert Figure("less", 0.04, 1 / 20).good
    assert not Figure("less", 0.06, 1 / 20).good
    assert Figure("more", 9, 8, at_least=True).good
    assert str(Figure("more", 7, 8, at_least=True)).endswith("MISSED")
    page = tmp_path / "README.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- /x -->\nb\n")
    write(page, "x", "new\n")
    assert page.read_text() == "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n"
    with pytest.raises(SystemExit, match="no place"):
        write(page, "y", "new\n")
