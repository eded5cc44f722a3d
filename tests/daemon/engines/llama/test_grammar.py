"""The grammars are judged by llama.cpp itself: is it one, does it admit what fits and refuse what does not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daemon.core.errors import BadRequest
from daemon.core.records import Tool
from daemon.engines.llama.grammar import call_grammar, schema_grammar

pytestmark = pytest.mark.engine

Admits = Callable[[str, str], bool]


@pytest.fixture(scope="module")
def admits(model_path: Path) -> Admits:
    """``admits(grammar, text)``: whether the text is one that the grammar lets a model write, to its end."""
    import llama_cpp as native
    import numpy as np

    params = native.llama_model_default_params()
    params.vocab_only = True
    model = native.llama_model_load_from_file(str(model_path).encode(), params)
    vocab = native.llama_model_get_vocab(model)
    end = native.llama_vocab_eos(vocab)

    def fits(sampler: Any, token: int) -> bool:
        row = np.zeros(1, np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)]))
        row["id"] = token
        array = native.llama_token_data_array(
            data=row.ctypes.data_as(native.ctypes.POINTER(native.llama_token_data)), size=1, selected=-1, sorted=False
        )
        native.llama_sampler_apply(sampler, native.ctypes.byref(array))
        return bool(np.isfinite(row["logit"][0]))

    def check(grammar: str, text: str) -> bool:
        sampler = native.llama_sampler_init_grammar(vocab, grammar.encode(), b"root")
        assert sampler, f"llama.cpp refuses\n{grammar}"
        data = text.encode()
        tokens = (native.llama_token * (len(data) + 8))()
        count = native.llama_tokenize(vocab, data, len(data), tokens, len(tokens), False, False)
        for token in tokens[:count]:
            if not fits(sampler, token):
                return False
            native.llama_sampler_accept(sampler, token)
        return fits(sampler, end)

    return check


SCHEMAS: list[tuple[dict[str, Any], list[object], list[object]]] = [
    ({"type": "string"}, ["", "é🦀", 'a "quote" \\ and\nbreak'], [1, None, {}]),
    ({"type": "integer"}, [0, -7, 1234567890], [1.5, "1", True]),
    ({"type": "number"}, [0, -1.5, 1e20], ["1"]),
    ({"type": "boolean"}, [True, False], [None, "true"]),
    ({"type": "null"}, [None], [0]),
    ({"type": ["string", "null"]}, ["a", None], [1]),
    ({"enum": ["red", "green", 3, None]}, ["red", 3, None], ["blue", 4]),
    ({"const": {"a": 1}}, [{"a": 1}], [{"a": 2}]),
    ({"type": "array", "items": {"type": "integer"}}, [[], [1], [1, 2, 3]], [["a"], {}]),
    ({"type": "array", "items": {}, "minItems": 2, "maxItems": 3}, [[1, 2], [1, 2, 3]], [[1], [1] * 4, []]),
    ({"type": "array", "minItems": 1}, [[1], [{"a": []}, "x"]], [[]]),
    ({"type": "array", "maxItems": 0}, [[]], [[1]]),
    ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}, [["a", 1]], [[1, "a"], ["a"]]),
    ({"type": "object"}, [{}, {"any": ["thing", {"at": None}]}], [[], 1]),
    ({"type": "object", "properties": {}}, [{}], [{"a": 1}]),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"a": 1, "b": 2}], [{"a": "b"}]),
    ({"type": "object", "additionalProperties": False}, [{}], [{"a": 1}]),
    (
        {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a", "b"]},
        [{"a": 1, "b": "x"}],
        [{"a": 1}, {"b": "x"}, {"a": 1, "b": 2}, {}, {"a": 1, "b": "x", "c": 3}],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}},
        },
        [{}, {"a": 1}, {"b": 2}, {"c": 3}, {"a": 1, "c": 3}, {"b": 2, "c": 3}, {"a": 1, "b": 2, "c": 3}],
        [{"d": 4}],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}},
            "required": ["b"],
        },
        [{"b": 2}, {"a": 1, "b": 2}, {"b": 2, "c": 3}, {"a": 1, "b": 2, "c": 3}],
        [{}, {"a": 1}, {"c": 3}, {"a": 1, "c": 3}],
    ),
    (
        {"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"x": {"type": "null"}}}]},
        [1, {"x": None}],
        ["a"],
    ),
    ({"oneOf": [{"const": "a"}, {"const": "b"}]}, ["a", "b"], ["c"]),
    (
        {
            "allOf": [
                {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
            ]
        },
        [{"a": 1, "b": 2}],
        [{"a": 1}, {"b": 2}],
    ),
    (
        {
            "$defs": {"n": {"type": "integer"}},
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/n"}},
            "required": ["a"],
        },
        [{"a": 1}],
        [{"a": "x"}],
    ),
    (
        {
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {
                        "v": {"type": "integer"},
                        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                    },
                    "required": ["v", "next"],
                }
            },
            "$ref": "#/$defs/node",
        },
        [{"v": 1, "next": None}, {"v": 1, "next": {"v": 2, "next": None}}],
        [{"v": 1}, {"v": 1, "next": 2}],
    ),
    (
        {
            "type": "object",
            "properties": {"né-1": {"type": "string"}, 'a"b': {"type": "string"}},
            "required": ["né-1", 'a"b'],
        },
        [{"né-1": "x", 'a"b': "y"}],
        [{"né-1": "x"}],
    ),
    ({}, [{}, {"a": 1}], [1, "a", []]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), SCHEMAS, ids=lambda value: json.dumps(value)[:60])
def test_a_schemas_grammar_admits_what_fits_and_nothing_else(
    admits: Admits, schema: dict[str, Any], good: list[object], bad: list[object]
) -> None:
    grammar = schema_grammar(schema)
    for value in good:
        assert admits(grammar, json.dumps(value, ensure_ascii=False)), value
    for value in bad:
        assert not admits(grammar, json.dumps(value, ensure_ascii=False)), value


def test_raw_control_characters_in_strings_are_not_admitted(admits: Admits) -> None:
    assert not admits(schema_grammar({"type": "string"}), '"a\nb"')
    assert not admits(schema_grammar({"type": "string"}), '"a\\xb"')


def test_bounds_on_values_do_not_stop_a_schema(admits: Admits) -> None:
    schema = {
        "type": "object",
        "properties": {
            "email": {"type": "string", "format": "email", "minLength": 3, "pattern": "^.*@.*$"},
            "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 150},
        },
        "required": ["email", "age"],
        "title": "Person",
        "description": "x",
        "$schema": "http://json-schema.org/draft-07/schema#",
    }
    assert admits(schema_grammar(schema), '{"email": "a@b", "age": 3}')


WEATHER = Tool("weather", "", {"properties": {"city": {"type": "string"}}, "required": ["city"]})
STOP = Tool("stop", "", {})


def test_a_call_is_wrapped_and_names_a_tool_with_its_own_arguments(admits: Admits) -> None:
    grammar = call_grammar([WEATHER, STOP])
    call = '<tool_call>\n{{"name": "{}", "arguments": {}}}\n</tool_call>'
    assert admits(grammar, call.format("weather", '{"city": "Oslo"}'))
    assert admits(grammar, call.format("stop", "{}"))
    assert not admits(grammar, call.format("weather", '{"town": "Oslo"}'))
    assert not admits(grammar, call.format("other", "{}"))
    assert not admits(grammar, '{"name": "stop", "arguments": {}}')


def test_an_answer_in_a_schema_may_be_a_call_where_tools_are_free(admits: Admits) -> None:
    grammar = schema_grammar({"properties": {"a": {"type": "null"}}}, [STOP])
    assert admits(grammar, '{"a": null}')
    assert admits(grammar, '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>')
    assert not admits(grammar, "words")


def test_tools_with_the_same_definitions_do_not_mix(admits: Admits) -> None:
    def tool(name: str, kind: str) -> Tool:
        schema = {"$defs": {"x": {"type": kind}}, "properties": {"v": {"$ref": "#/$defs/x"}}, "required": ["v"]}
        return Tool(name, "", schema)

    grammar = call_grammar([tool("one", "integer"), tool("two", "string")])
    assert admits(grammar, '<tool_call>\n{"name": "one", "arguments": {"v": 1}}\n</tool_call>')
    assert admits(grammar, '<tool_call>\n{"name": "two", "arguments": {"v": "a"}}\n</tool_call>')
    assert not admits(grammar, '<tool_call>\n{"name": "two", "arguments": {"v": 1}}\n</tool_call>')


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"not": {"type": "string"}}, "not"),
        ({"type": "object", "patternProperties": {"^x": {}}}, "patternProperties"),
        ({"if": {}, "then": {}}, "if"),
        ({"$ref": "https://example.com/schema.json"}, "https://example.com/schema.json"),
        ({"$ref": "#/$defs/missing"}, "#/$defs/missing"),
        ({"type": "date"}, "date"),
        ({"type": "array", "minItems": 5000}, "minItems 5000"),
        ({"properties": {"a": False}}, "False"),
        ({"properties": {"a": 3}}, "3"),
        ({"$ref": 7}, "7"),
        ({"type": "array", "minItems": 5, "maxItems": 2}, "maxItems 2 below minItems 5"),
        ({"type": "array", "maxItems": -1}, "maxItems -1"),
        ({"type": "array", "minItems": "x"}, "no JSON schema"),
        ({"properties": [1]}, "no JSON schema"),
        ({"properties": {"a": {}}, "required": 5}, "no JSON schema"),
        ({"enum": 5}, "no JSON schema"),
        ({"allOf": [{"$ref": "#/allOf/0"}]}, "more than 10000 parts"),
        ({"allOf": [{"$ref": "#"}]}, "a part of itself"),
        ({"enum": list(range(1001))}, "1001 choices"),
        ({"properties": {str(name): {} for name in range(1001)}}, "1001 choices"),
        ({"anyOf": [{}] * 1001}, "1001 choices"),
        ({"anyOf": [{}] * 500, "oneOf": [{}] * 500}, "more than 10000 parts"),
    ],
)
def test_what_a_grammar_cannot_say_is_refused_by_name(schema: dict[str, Any], named: str) -> None:
    with pytest.raises(BadRequest, match="response_schema") as refused:
        schema_grammar(schema)
    assert named in refused.value.message


def test_a_tools_schema_is_named_in_the_refusal() -> None:
    with pytest.raises(BadRequest, match=r"tools\.weather"):
        call_grammar([Tool("weather", "", {"not": {}})])
