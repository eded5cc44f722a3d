"""Prometheus' text format 0.0.4, read strictly: whatever Prometheus would refuse or misread fails here."""

import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{((?:{_LABEL},?)*)\}})? (\S+)")
_TYPES = ("counter", "gauge", "histogram")


@dataclass
class Metric:
    type: str
    help: str
    #: By sample name and labels.
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)

    def value(self, name: str, **labels: str) -> float:
        return self.samples[name, frozenset(labels.items())]


def parse(text: str) -> dict[str, Metric]:
    """Each family by its name."""
    assert text.endswith("\n"), "the last line needs its end"
    found: dict[str, Metric] = {}
    current = ""
    lines = iter(text[:-1].split("\n"))
    for line in lines:
        if line.startswith("# HELP "):
            current, _, told = line.removeprefix("# HELP ").partition(" ")
            assert re.fullmatch(_NAME, current)
            assert current not in found, f"{current} comes in two places"
            kind = next(lines).removeprefix(f"# TYPE {current} ")
            assert kind in _TYPES, kind
            assert told
            found[current] = Metric(kind, told)
        else:
            _add(found[current], current, line)
    for name, metric in found.items():
        assert (metric.type == "counter") == name.endswith("_total"), f"{name} is a {metric.type}"
        if metric.type == "histogram":
            _check_histogram(name, metric)
    return found


def _add(metric: Metric, family: str, line: str) -> None:
    match = _SAMPLE.fullmatch(line)
    assert match, f"not a sample: {line!r}"
    name, inside, value = match.group(1), match.group(2) or "", match.group(5)
    ends = ("_bucket", "_sum", "_count") if metric.type == "histogram" else ("",)
    assert name in [family + end for end in ends], f"{name} stands under {family}"
    pairs = re.findall(_LABEL, inside)
    labels = frozenset(pairs)
    assert len({key for key, _ in pairs}) == len(pairs), f"a label twice: {line!r}"
    assert (name, labels) not in metric.samples, f"a sample twice: {line!r}"
    number = float(value)
    assert number >= 0, line
    metric.samples[name, labels] = number


def _check_histogram(name: str, metric: Metric) -> None:
    series: dict[frozenset[tuple[str, str]], list[tuple[float, float]]] = {}
    for (sample, labels), value in metric.samples.items():
        if sample == f"{name}_bucket":
            bound = float(dict(labels)["le"])
            series.setdefault(frozenset(p for p in labels if p[0] != "le"), []).append((bound, value))
    for labels, buckets in series.items():
        assert buckets == sorted(buckets), f"{name}: bounds or counts fall"
        assert [count for _, count in buckets] == sorted(count for _, count in buckets)
        assert buckets[-1][0] == float("inf")
        assert metric.samples[f"{name}_count", labels] == buckets[-1][1]
        assert (f"{name}_sum", labels) in metric.samples
