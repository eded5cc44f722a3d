"""`reef demo`: the whole loop on this machine, for real, in one screen. No canned output anywhere.

Every step uses what a user's own agent and command line would use. A step that fails ends the story with exit code 1.
"""

from collections.abc import Callable
from typing import Annotated

from daemon.core.errors import ExitCode
from daemon.core.paths import home
from reef_cli import output
from reef_cli.demo.loop import Loop
from reef_cli.demo.pi import pi
from reef_cli.demo.story import Facts, Story
from reef_cli.parameters import AsJson, Help


def demo(
    *,
    quick: Annotated[bool, Help("Only the loop: without the real coding agent.", "--quick")] = False,
    seed: Annotated[int, Help("Of the training: another seed, another LoRA adapter.")] = 0,
    as_json: AsJson = False,
) -> int:
    """A scripted person asks a small real model ordinary questions and types one note. Reef turns the note into a rule
    and into weights, judges both on questions that neither has seen, releases what is proven, swaps it in while
    somebody goes on asking, and rolls it back. Without --quick the coding agent Pi then works on the release (installed
    privately, about 400 MB with its Node.js). Everything is recorded under a scenario of its own.
    """
    story = Story(as_json=as_json)
    place = home()
    loop = Loop(place, story, seed)
    steps: list[tuple[str, str, Callable[[], Facts]]] = [
        ("serve", "Serve: a daemon, and a real model on this machine", loop.serve),
        ("ask", "Observe: a person (scripted) asks ordinary questions", loop.ask),
        ("before", "Before: what the person would like, on questions held out", loop.measure_before),
        ("feedback", "One note and a few marks", loop.feed_back),
        ("harness", "Grow and judge: the note as a rule in the harness", loop.try_harness),
        ("weights", "Grow and judge: the note into the weights (a LoRA adapter)", loop.try_weights),
        ("after", "After: the same held-out questions", loop.measure_after),
        ("rollback", "Back with one command, and forward again", loop.roll_back),
        *(
            []
            if quick
            else [("pi", "A real coding agent on this release: Pi", lambda: pi(place, story, loop.scenario))]
        ),
    ]
    for name, title, work in steps:
        if story.step(name, title, work) is None:
            story.text(f"Failed: {name}. Next: reef doctor")
            return ExitCode.FAILED
    _ending(story, loop.scenario)
    story.end({"weights": loop.weights, "harness": loop.harness})
    return ExitCode.OK


def _ending(story: Story, scenario: str) -> None:
    story.text(output.bold("Next"))
    story.text("   reef                        the dashboard: traces, releases, jobs")
    story.text(f"   reef releases list --scenario {scenario}")
    story.text("   reef harness install --adapter pi      then: reef-pi")
    story.text('   eval "$(reef env)"          start any agent in this shell: it now talks to Reef')
