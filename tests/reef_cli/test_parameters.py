"""The hot commands' words: the plain form is bound, everything else is Typer's."""

from typing import Annotated, Any, Literal

import pytest

from reef_cli.parameters import AsJson, Help, bind


def command(
    text: Annotated[str, Help("text")],
    record: Annotated[str | None, Help("record")] = None,
    *,
    shell: Annotated[Literal["sh", "fish"], Help("shell", "--shell", "-s")] = "sh",
    scenario_name: Annotated[str | None, Help("scenario")] = None,
    as_json: AsJson = False,
) -> None: ...


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["hello"], {"text": "hello"}),
        (["hello", "rec_1"], {"text": "hello", "record": "rec_1"}),
        (["--json", "hello"], {"text": "hello", "as_json": True}),
        (["hello", "--json", "rec_1"], {"text": "hello", "record": "rec_1", "as_json": True}),
        (["-s", "fish", "hello"], {"text": "hello", "shell": "fish"}),
        (["--shell", "fish", "hello"], {"text": "hello", "shell": "fish"}),
        (["--scenario-name", "work/api", "hello"], {"text": "hello", "scenario_name": "work/api"}),
        (["-"], {"text": "-"}),
        (["two words; $(rm)"], {"text": "two words; $(rm)"}),
    ],
)
def test_the_plain_form_is_bound(words: list[str], values: dict[str, Any]) -> None:
    assert bind(command, words) == values


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["hello", "rec_1", "more"],
        ["hello", "--unknown"],
        ["hello", "--shell"],
        ["hello", "--shell", "csh"],
        ["hello", "--shell=fish"],
        ["hello", "--scenario-name", "--json"],
        ["--", "-dash"],
    ],
)
def test_everything_else_is_left_to_typer(words: list[str]) -> None:
    assert bind(command, words) is None
