"""The README's pictures: drawn from the recording that lies beside them, of the screens as they are now."""

import re
from pathlib import Path

from bench.screenshots import DEMO, drawn
from reef_cli.tui.replay import Replay, load

_README = Path(__file__).parents[2] / "README.md"


async def test_the_recording_still_plays() -> None:
    recording = load(DEMO)
    assert recording.trouble is None
    pictures = await drawn(Replay(recording, speed=100))
    texts = {name: re.sub(r"<[^>]*>|&#160;", " ", svg) for name, svg in pictures.items()}
    assert "of Japan?" in re.sub(r"\s+", " ", texts["traces"])
    assert "is Tokyo and" in re.sub(r"\s+", " ", texts["trace"])
    assert not any(
        "http" in re.sub(r"http://www.w3.org|https://www.textualize.io", "", svg) for svg in pictures.values()
    )
    for name in pictures:
        assert f"(assets/{name}.svg)" in _README.read_text("utf-8")
        assert DEMO.with_name(f"{name}.svg").exists()
