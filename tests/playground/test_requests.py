"""Bodies of requests: every one is read or refused with a status and a message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracr.playground.replies import RefusedRequest
from tracr.playground.requests import LONGEST, MOST_TOKENS, TASKS, ProgramRequest, read_body, read_task

SOURCE = "y = indices;"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def read(**fields: Any) -> ProgramRequest:
    """A request to compile, as a worker gets it."""
    task = read_task("compile", json.dumps({"source": SOURCE, **fields}).encode())
    sent = json.loads(json.dumps(task))
    assert sent.pop("task") == "compile"
    return ProgramRequest.of(sent)


def test_a_request_arrives_as_it_was_sent() -> None:
    """All fields; lists become tuples."""
    given = {"name": "y", "vocab": ["a", 1, 0.5], "max_len": 3, "level": 2, "causal": True, "input": ["a", 1]}
    expected = ProgramRequest(SOURCE, "y", ("a", 1, 0.5), 3, 2, True, ("a", 1))
    assert read(**given) == expected


def test_fields_have_defaults() -> None:
    """Only the source is needed; null is the default of the vocabulary, the length and the input."""
    assert read() == read(vocab=None, max_len=None, input=None) == ProgramRequest(SOURCE)


def test_a_text_is_a_list_of_its_characters() -> None:
    """In the vocabulary and the input."""
    assert read(vocab="ab", input="ba") == read(vocab=["a", "b"], input=["b", "a"])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"source": ' * 100_000, 400),
        (bytes(range(256)), 400),
        (b'{"source": "y = 1;", "max_len": %s}' % (b"9" * 100_000), 400),
        (b'{"source": "y = 1;", "vocab": [NaN]}', 400),
        (b"null", 422),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"source": 1}', 422),
        (b'{"source": "\\ud800"}', 422),
    ],
)
def test_bodies_that_are_no_program(body: bytes, status: int) -> None:
    """400 for what is not JSON, 422 for what is not a program."""
    with pytest.raises(RefusedRequest) as refused:
        read_task("compile", body)
    assert refused.value.status == status
    assert json.loads(refused.value.reply.body)["error"]["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {"vocab": []},
        {"vocab": ["t"] * (MOST_TOKENS + 1)},
        {"vocab": ["t" * 61]},
        {"vocab": [None]},
        {"vocab": [["a"]]},
        {"vocab": {"a": 1}},
        {"vocab": [1e999]},
        {"max_len": 0},
        {"max_len": LONGEST + 1},
        {"max_len": "3"},
        {"max_len": 2.5},
        {"max_len": True},
        {"level": 3},
        {"level": -1},
        {"level": None},
        {"causal": 1},
        {"name": "n" * 61},
        {"name": None},
        {"input": ["a"] * (LONGEST + 1)},
        {"maxlen": 3},
        {"kind": "page"},
    ],
    ids=str,
)
def test_sizes_and_types_are_bounded(fields: dict[str, Any]) -> None:
    """The message names the field."""
    text = json.dumps({"source": SOURCE, **fields}).replace("Infinity", "1e999")
    with pytest.raises(RefusedRequest, match=next(iter(fields))) as refused:
        read_task("compile", text.encode())
    assert refused.value.status == 422


def test_a_misspelt_field_is_not_ignored() -> None:
    """The hint has the right one."""
    with pytest.raises(RefusedRequest, match="did you mean max_len"):
        read(maxlen=3)


def read_or_refused(task: str, body: bytes) -> Any:
    """The fields of a body, or the status of its refusal."""
    try:
        return read_task(task, body)
    except RefusedRequest as error:
        return error.status


@given(st.sampled_from(sorted(TASKS)), st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(task: str, body: bytes) -> None:
    """Nothing else is raised."""
    found = read_or_refused(task, body)
    assert found in (400, 422) or found["task"] == task


@settings(max_examples=40)
@given(st.sampled_from(sorted(TASKS)), st.data())
def test_any_values_of_the_fields_are_read_or_refused(task: str, data: st.DataObject) -> None:
    """What is read can be sent to a worker: it is JSON without NaN."""
    fields = data.draw(st.dictionaries(st.sampled_from(sorted(TASKS[task])), VALUES))
    found = read_or_refused(task, json.dumps({"source": SOURCE, **fields}).encode())
    assert found in (400, 422) or json.dumps(found, allow_nan=False).isascii()


def test_read_body_refuses_nesting_that_python_cannot_read() -> None:
    """No RecursionError comes out."""
    with pytest.raises(RefusedRequest, match="nested too deeply"):
        read_body(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)
