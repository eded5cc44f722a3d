"""Which release a wrapped run's request is to be counted for: the one whose rules it carries.

The head may have moved since the run began, and an agent that goes on with a conversation may keep the rules which that
began with (Claude Code does), whatever its run was given. Feedback and marks are counted by this.
"""

import re
from dataclasses import replace
from typing import Final

from daemon.core import harness
from daemon.core.records import Exchange, Transcript
from daemon.core.releases import BASE_RELEASE

#: Tags that the wrapper sends: the release of its run, and, where that brings rules, that it told some.
RELEASE: Final = "release"
_RULES: Final = "rules"
_GIVEN: Final = re.compile(r"base|r[0-9]{1,9}-[0-9a-f]{8}")
_SAID_BY_OTHERS: Final = ("assistant", "tool")


def attributed(exchange: Exchange, transcript: Transcript) -> Exchange:
    """The same, under the release that it carries; as it is where no wrapper says which one it was given."""
    given = exchange.tags.get(RELEASE, "")
    if not _GIVEN.fullmatch(given):
        return exchange
    carried = _marked(transcript) or (BASE_RELEASE if _lacks_rules(exchange, transcript) else given)
    if carried == given == exchange.release_id:
        return exchange
    return replace(exchange, release_id=carried, tags={**exchange.tags, RELEASE: carried})


def _lacks_rules(exchange: Exchange, transcript: Transcript) -> bool:
    """The run was given rules, and this turn has none: its conversation began before there were any. What an agent asks
    beside its conversation (a title, for a sub-agent) never has them."""
    return _RULES in exchange.tags and transcript.tools > 0 and not (exchange.subagent or exchange.side)


def _marked(transcript: Transcript) -> str | None:
    """Of the system prompt first, then of what was said last: a file that a tool shows is not what the agent obeys."""
    found = harness.marked(transcript.head + transcript.tail)
    for message in () if found else reversed(transcript.messages):
        if message.role not in _SAID_BY_OTHERS and (found := harness.marked(message.raw)):
            break
    return found
