"""What no statistics can make good: a candidate with one of these faults is turned down before any task runs (R1)."""

from typing import Final

from daemon.core import playbook
from daemon.core.plaintext import invisible
from recipes.gate.variant import Variant

#: A harness file that is longer is no rule book any more, and fills an agent's context.
_MOST_BYTES: Final = 256 << 10


def faults(incumbent: Variant, candidate: Variant) -> list[str]:
    """A sentence for each fault of the files that the candidate changes."""
    found = []
    for path, text in sorted(candidate.files.items()):
        if text == incumbent.files.get(path):
            continue
        if len(text.encode("utf-8", "replace")) > _MOST_BYTES:
            found.append(f"{path} has more than {_MOST_BYTES >> 10} KiB")
        if (hidden := invisible(text, keep="\n\t")) is not None:
            found.append(f"{path} holds a character that nobody sees: {hidden}")
    try:
        rules = playbook.parse(candidate.files.get(playbook.PATH, ""))
    except ValueError as error:
        return [*found, f"{playbook.PATH} cannot be read: {error}"]
    twice = {rule.id for rule in rules if sum(rule.id == other.id for other in rules) > 1}
    return found + [f"{playbook.PATH} has two rules {id}" for id in sorted(twice)]
