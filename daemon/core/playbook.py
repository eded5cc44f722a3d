"""The playbook: counted rules, the part of a harness that changes most. ``harness/playbook.md`` in every release.

One rule a line, ``- [r-00001] helpful=5 harmful=0 :: text``, after ACE (arXiv 2510.04618): small deltas, merged without
a model, so that no rewrite ever loses a rule. Agents never see ids or counters, only what `told` returns.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

PATH: Final = "playbook.md"
_LINE: Final = re.compile(r"- \[(r-\d{5,})\] helpful=(\d+) harmful=(\d+) :: (\S.*)")
_HEAD: Final = "# Playbook\n"


class Rule(NamedTuple):  # not a dataclass: see daemon.core.paths.Home
    """``helpful`` and ``harmful`` count marks on answers that were given under it."""

    id: str
    text: str
    helpful: int = 0
    harmful: int = 0


def parse(text: str) -> tuple[Rule, ...]:
    """Rules in order. Raises ValueError naming the line that is none."""
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"line {number} is not a rule: {line[:80]!r}")
        rules.append(Rule(found[1], found[4], int(found[2]), int(found[3])))
    return tuple(rules)


def dump(rules: Iterable[Rule]) -> str:
    """The file's text; `parse` of it gives the same rules."""
    lines = [line(rule) for rule in rules]
    return "\n".join([_HEAD, *lines, ""]) if lines else _HEAD


def line(rule: Rule) -> str:
    """As it stands in the file."""
    return f"- [{rule.id}] helpful={rule.helpful} harmful={rule.harmful} :: {rule.text}"


def told(rules: Iterable[Rule]) -> str:
    """What an agent is told: the rules' texts as a list; empty without rules."""
    return "\n".join(f"- {rule.text}" for rule in rules)


def added(rules: tuple[Rule, ...], text: str) -> tuple[Rule, ...]:
    """With a rule more, under the next free number; ``text`` becomes one line."""
    number = max((int(rule.id[2:]) for rule in rules), default=0) + 1
    return (*rules, Rule(f"r-{number:05d}", " ".join(text.split())))


def counted(rules: tuple[Rule, ...], *, helpful: int = 0, harmful: int = 0) -> tuple[Rule, ...]:
    """Every rule's counters moved: marks are on answers, and all rules were told for each."""
    return tuple(r._replace(helpful=r.helpful + helpful, harmful=r.harmful + harmful) for r in rules)
