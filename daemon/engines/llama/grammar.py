r"""JSON schema to GBNF, llama.cpp's grammar: what forces an answer's form.

Every text the grammar admits is valid JSON of the schema's shape. Bounds on values (``minimum``, ``maxLength``,
``pattern``, ``format``, ``uniqueItems``…) are not expressed: the shape is forced, the values are the model's. Objects
hold their declared properties in the declared order. What would change the shape and cannot be said is refused by name
(BadRequest).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from daemon.core.errors import BadRequest
from daemon.core.records import Tool
from daemon.engines.llama.calls import CLOSE, OPEN

_REFUSED: Final = (
    "not", "if", "then", "else", "patternProperties", "dependentSchemas", "dependentRequired", "dependencies",
    "propertyNames", "unevaluatedProperties", "unevaluatedItems", "contains", "$dynamicRef", "$recursiveRef",
)  # fmt: skip

_PRIMITIVES: Final = {
    "ws": '" "?',
    "char": r'[^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})',
    "string": r'"\"" char* "\""',
    "integer": '"-"? ("0" | [1-9] [0-9]{0,15})',
    "number": 'integer ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,3})?',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "value": "object | array | string | number | boolean | null",
    "object": '"{" ws (string ws ":" ws value (ws "," ws string ws ":" ws value)*)? ws "}"',
    "array": '"[" ws (value (ws "," ws value)*)? ws "]"',
}
#: llama.cpp copies the item for each repetition; beyond this the count is left open.
_MOST_REPEATS: Final = 64
#: Parts in all schemas of a request; agents with a hundred tools have some thousands.
_MOST_PARTS: Final = 10_000
#: Each step tries all that may come next: with 10 000 values of an enum every token would take seconds, for everyone.
_MOST_CHOICES: Final = 1000


def schema_grammar(schema: Mapping[str, Any], tools: Sequence[Tool] = ()) -> str:
    """A grammar whose texts are JSON of ``schema`` (``{}``: any object), or calls of ``tools`` where there are any."""
    rules = _Rules("response_schema", schema)
    with rules.reading():
        answer = rules.visit(schema or {"type": "object"}, "answer")
    return rules.text(" | ".join([answer, *_calls(rules, tools)]))


def call_grammar(tools: Sequence[Tool]) -> str:
    """A grammar whose texts are one call of one of ``tools``."""
    rules = _Rules("tools", {})
    return rules.text(" | ".join(_calls(rules, tools)))


def _calls(rules: "_Rules", tools: Sequence[Tool]) -> list[str]:
    names = []
    for index, tool in enumerate(tools):
        inner = _Rules(f"tools.{tool.name}", tool.schema, prefix=f"t{index}-", budget=rules.budget)
        with inner.reading():
            arguments = inner.visit({"type": "object", **tool.schema}, "arguments")
        rules.adopt(inner)
        head, tail = (f'{OPEN}\n{{"name": {json.dumps(tool.name)}, "arguments": ', f"}}\n{CLOSE}")
        names.append(rules.add(f"call-{index}", f"{_literal(head)} {arguments} {_literal(tail)}"))
    return names


class _Rules:
    """The rules of one schema. ``where`` names it in errors; ``budget`` is what all schemas of a request share."""

    def __init__(
        self, where: str, root: Mapping[str, Any], prefix: str = "", budget: Iterator[int] | None = None
    ) -> None:
        self.budget = iter(range(_MOST_PARTS)) if budget is None else budget
        self._where = where
        self._root = root
        self._prefix = prefix
        self._rules: dict[str, str] = {}
        self._named: dict[str, int] = {}
        self._references: dict[str, str] = {}

    def text(self, root: str) -> str:
        rules = {**_PRIMITIVES, **self._rules, "root": root}
        return "\n".join(f"{name} ::= {rule}" for name, rule in rules.items())

    def add(self, name: str, rule: str) -> str:
        base = self._prefix + re.sub(r"[^a-zA-Z0-9]+", "-", name).strip("-")
        count = self._named.get(base, 1)
        unique = base if count == 1 else f"{base}-{count}"
        while unique in self._rules or unique in _PRIMITIVES or unique == "root":
            count += 1
            unique = f"{base}-{count}"
        self._named[base] = count
        self._rules[unique] = rule
        return unique

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Whatever else a schema may be, what comes out is a BadRequest that names it."""
        try:
            yield
        except RecursionError:
            raise self._cannot("levels this deep, or one that is a part of itself") from None
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            raise BadRequest(f"{self._where}: this is no JSON schema: {error}") from None

    def _choices(self, count: int) -> None:
        if count > _MOST_CHOICES:
            raise self._cannot(f"{count} choices in one place (at most {_MOST_CHOICES})")

    def _spend(self) -> None:
        """One part more; raises BadRequest for a schema so large that it would hold up everybody else."""
        if next(self.budget, None) is None:
            raise self._cannot(f"more than {_MOST_PARTS} parts")

    def adopt(self, other: "_Rules") -> None:
        self._rules.update(other._rules)

    def visit(self, schema: object, name: str) -> str:
        """The name of a rule for ``schema``."""
        self._spend()
        if schema is True:
            return "value"
        if not isinstance(schema, Mapping):
            raise self._cannot(repr(schema))
        refused = next((word for word in _REFUSED if word in schema), None)
        if refused:
            raise self._cannot(refused)
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        for word in ("anyOf", "oneOf"):
            if word in schema:
                rest = {key: value for key, value in schema.items() if key not in (word, "title", "description")}
                return self._union([_merge(rest, option) for option in schema[word]], name)
        if "allOf" in schema:
            return self._all_of(schema, name)
        if "const" in schema or "enum" in schema:
            values = [schema["const"]] if "const" in schema else schema["enum"]
            self._choices(len(values))
            return self.add(name, " | ".join(_literal(json.dumps(v, ensure_ascii=False)) for v in values))
        return self._typed(schema, name)

    def _typed(self, schema: Mapping[str, Any], name: str) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._union([{**schema, "type": one} for one in kind], name)
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else "value"
        if kind == "object":
            return self._object(schema, name)
        if kind == "array":
            return self._array(schema, name)
        if kind not in _PRIMITIVES:
            raise self._cannot(f"type {kind!r}")
        return str(kind)

    def _union(self, options: Sequence[object], name: str) -> str:
        self._choices(len(options))
        names = [self.visit(option, f"{name}-{index}") for index, option in enumerate(options)]
        return self.add(name, " | ".join(dict.fromkeys(names)))

    def _all_of(self, schema: Mapping[str, Any], name: str) -> str:
        merged: Mapping[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
        for part in schema["allOf"]:
            while isinstance(part, Mapping) and "$ref" in part:
                self._spend()
                part = self._resolve(part["$ref"])
            merged = _merge(merged, part)
        return self.visit(merged, name)

    def _reference(self, reference: object) -> str:
        if not isinstance(reference, str):
            raise self._cannot(f"$ref {reference!r}")
        if reference not in self._references:
            target = self._resolve(reference)
            name = self.add(f"ref-{reference.rpartition('/')[2]}", "")
            self._references[reference] = name
            self._rules[name] = self.visit(target, f"{name}-target")
        return self._references[reference]

    def _resolve(self, reference: str) -> Any:
        target: Any = self._root
        path = reference.split("/")
        if path[0] != "#":
            raise self._cannot(f"$ref {reference!r}: only references inside the schema")
        for step in path[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            try:
                target = target[int(key)] if isinstance(target, list) else target[key]
            except (KeyError, IndexError, ValueError, TypeError):
                raise self._cannot(f"$ref {reference!r}: nothing is there") from None
        return target

    def _object(self, schema: Mapping[str, Any], name: str) -> str:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        required = set(schema.get("required") or ())
        if not properties:
            return self._open_object(schema.get("additionalProperties", "properties" not in schema), name)
        self._choices(sum(key not in required for key in properties))
        pairs = [
            (self._pair(key, self.visit(value, f"{name}-{key}"), name), key in required)
            for key, value in properties.items()
        ]
        return self.add(name, f'"{{" ws {self._members(pairs, name)} ws "}}"')

    def _pair(self, key: str, value: str, name: str) -> str:
        return self.add(f"{name}-{key}-pair", f'{_literal(json.dumps(key, ensure_ascii=False))} ws ":" ws {value}')

    def _members(self, pairs: Sequence[tuple[str, bool]], name: str) -> str:
        """Members in order, optional ones left out or not, commas only between those that are there."""
        following = ""  # what may come after at least one member
        first: list[str] = []  # alternatives for the first member that is there
        for pair, needed in reversed(pairs):
            tail = self.add(f"{name}-after", following) if following else ""
            start = f"{pair} {tail}".strip()
            first = [start] if needed else [start, *first] if first else [start, '""']
            following = f'ws "," ws {pair} {tail}'.strip() if needed else f'(ws "," ws {pair})? {tail}'.strip()
        return "(" + " | ".join(first) + ")"

    def _open_object(self, values: object, name: str) -> str:
        if values is True or values == {}:
            return "object"
        if values is False:
            return self.add(name, '"{" ws "}"')
        pair = f'string ws ":" ws {self.visit(values, f"{name}-value")}'
        return self.add(name, f'"{{" ws ({pair} (ws "," ws {pair})*)? ws "}}"')

    def _array(self, schema: Mapping[str, Any], name: str) -> str:
        fixed = schema.get("prefixItems") or (schema.get("items") if isinstance(schema.get("items"), list) else None)
        if fixed:
            items = [self.visit(item, f"{name}-{index}") for index, item in enumerate(fixed)]
            return self.add(name, '"[" ws ' + ' ws "," ws '.join(items) + ' ws "]"')
        item = self.visit(schema.get("items", True), f"{name}-item")
        least, most = int(schema.get("minItems", 0)), schema.get("maxItems")
        if least > _MOST_REPEATS:
            raise self._cannot(f"minItems {least} (at most {_MOST_REPEATS})")
        if most is not None and most < max(least, 0):
            raise self._cannot(f"maxItems {most} below minItems {least}")
        if most == 0:
            return self.add(name, '"[" ws "]"')
        upper = "" if most is None or most > _MOST_REPEATS else str(int(most) - 1)
        more = f'(ws "," ws {item}){{{max(least - 1, 0)},{upper}}}'
        body = f"{item} {more}" if least else f"({item} {more})?"
        return self.add(name, f'"[" ws {body} ws "]"')

    def _cannot(self, what: str) -> BadRequest:
        return BadRequest(f"{self._where}: this engine cannot force a JSON schema with {what}")


def _merge(base: Mapping[str, Any], more: object) -> Any:
    """Both schemas at once, as far as properties go; what ``more`` says otherwise wins."""
    if not isinstance(more, Mapping) or not base:
        return more
    merged = {**base, **more}
    if "properties" in base and "properties" in more:
        merged["properties"] = {**base["properties"], **more["properties"]}
    if "required" in base and "required" in more:
        merged["required"] = [*base["required"], *more["required"]]
    return merged


def _literal(text: str) -> str:
    """A GBNF string that stands for ``text``."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return f'"{escaped}"'
