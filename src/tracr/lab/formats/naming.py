"""The names of writers and readers in the formats of several tools, and the translation of one into another.

A naming is a template for each kind of writer and of reader. A name is read by the pattern of its template, and written
by filling in another one: both directions use the same table. Numbers have no leading zeros, so every edge has one name
in each naming. Only the embedding has further names that are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from tracr.errors import FormatError, UnknownName
from tracr.ground_truth.edge_keys import all_later, as_text
from tracr.ground_truth.scores import EdgeKey
from tracr.lab.formats.sizes import CircuitSizes
from tracr.spelling import did_you_mean

__all__ = ["NAMINGS", "Naming", "edge_key", "edge_name", "has_form", "naming_of", "node_names", "shown"]

LONGEST = 60  # characters of a name that are shown


@dataclass(frozen=True)
class Naming:
    """Templates of the names of writers and readers; `also` are further names of the embedding that are read.

    Readers are the inputs of heads apart (`qkv`), of heads as one (`head`), of all heads of a layer (`attention`), of
    MLPs, and the unembedding. A kind without a template cannot be named. `absolute`: the tool ranks edges by the
    absolute value of their scores.
    """

    writers: Mapping[str, str]
    readers: Mapping[str, str]
    also: tuple[str, ...] = ()
    absolute: bool = False


OURS = "tracr"
NAMINGS: Mapping[str, Naming] = MappingProxyType(
    {
        OURS: Naming(
            {
                "embed": "embed",
                "head": "blocks.{layer}.attn.{head}",
                "attention": "blocks.{layer}.attn",
                "mlp": "blocks.{layer}.mlp",
            },
            {
                "qkv": "blocks.{layer}.attn.{head}.{input}",
                "head": "blocks.{layer}.attn.{head}",
                "attention": "blocks.{layer}.attn",
                "mlp": "blocks.{layer}.mlp",
                "unembed": "unembed",
            },
            also=("pos_embed",),
        ),
        "eap": Naming(
            {"embed": "input", "head": "a{layer}.h{head}", "mlp": "m{layer}"},
            {"qkv": "a{layer}.h{head}<{input}>", "mlp": "m{layer}", "unembed": "logits"},
            absolute=True,
        ),
        "auto-circuit": Naming(
            {"embed": "Resid Start", "head": "A{layer}.{head}", "mlp": "MLP {layer}"},
            {
                "qkv": "A{layer}.{head}.{INPUT}",
                "head": "A{layer}.{head}",
                "mlp": "MLP {layer}",
                "unembed": "Resid End",
            },
            absolute=True,
        ),
        "transformer-lens": Naming(
            {
                "embed": "blocks.0.hook_resid_pre",
                "head": "blocks.{layer}.attn.hook_result[:, :, {head}]",
                "attention": "blocks.{layer}.hook_attn_out",
                "mlp": "blocks.{layer}.hook_mlp_out",
            },
            {
                "qkv": "blocks.{layer}.hook_{input}_input[:, :, {head}]",
                "head": "blocks.{layer}.hook_attn_in[:, :, {head}]",
                "attention": "blocks.{layer}.hook_attn_in",
                "mlp": "blocks.{layer}.hook_mlp_in",
                "unembed": "blocks.{last}.hook_resid_post",
            },
            also=("hook_embed", "hook_pos_embed"),
        ),
    }
)
"""The formats, by name."""

NUMBER = "0|[1-9][0-9]{0,8}"
FIELDS = {"layer": NUMBER, "head": NUMBER, "last": NUMBER, "input": "[qkv]", "INPUT": "[QKV]"}


def naming_of(name: str) -> Naming:
    """The naming of a format."""
    if name not in NAMINGS:
        raise UnknownName(f"there is no format {name!r}", hint=did_you_mean(name, NAMINGS, f"use {', '.join(NAMINGS)}"))
    return NAMINGS[name]


def edge_name(edge: EdgeKey, format: str, sizes: CircuitSizes) -> str:
    """The name of an edge in a format.

    >>> sizes = CircuitSizes(layers=2, heads=4)
    >>> [edge_name(("embed", "blocks.1.attn.3.q"), name, sizes) for name in ("eap", "auto-circuit")]
    ['input->a1.h3<q>', 'Resid Start->A1.3.Q']
    """
    target = naming_of(format)
    writer, reader = _checked(edge, OURS, sizes)
    ends = (_written(*writer, target.writers, sizes), _written(*reader, target.readers, sizes))
    if not sizes.layers and "{last}" in target.readers["unembed"]:
        raise FormatError(f"{format} has no names for a model without layers", hint='use the format "eap"')
    if None in ends:
        raise FormatError(f"{format} has no name for {as_text(edge)}", hint='use edges of the granularity "qkv"')
    return "->".join(map(str, ends))


def edge_key(name: str, format: str, sizes: CircuitSizes) -> EdgeKey:
    """The edge that has this name in a format.

    >>> edge_key("a0.h1->logits", "eap", CircuitSizes(layers=1, heads=2))
    ('blocks.0.attn.1', 'unembed')
    """
    ends = [end.strip() for end in name.split("->")] if isinstance(name, str) else []
    if len(ends) != 2:
        raise FormatError(f"{shown(name)} is not the name of an edge", hint="write WRITER->READER")
    writer, reader = _checked((ends[0], ends[1]), format, sizes)
    ours = naming_of(OURS)
    return str(_written(*writer, ours.writers, sizes)), str(_written(*reader, ours.readers, sizes))


def node_names(format: str, sizes: CircuitSizes) -> dict[str, str]:
    """The name of every writer in a format, and of the unembedding, each with our name.

    >>> list(node_names("eap", CircuitSizes(layers=1, heads=1)))
    ['input', 'a0.h0', 'm0', 'logits']
    """
    naming, found = naming_of(format), {}
    for name in sizes.sites.writers:
        kind, fields = _part(name, "writer", naming_of(OURS), sizes)
        found[_filled(naming.writers[kind], fields, sizes)] = name
    return {**found, _filled(naming.readers["unembed"], {}, sizes): "unembed"}


def has_form(name: str, format: str) -> bool:
    """Whether a name has the form of an edge in a format; its numbers may be too large.

    >>> has_form("m7->logits", "eap"), has_form("m7->unembed", "eap")
    (True, False)
    """
    naming = naming_of(format)
    writer, _, reader = (end.strip() for end in name.partition("->"))
    known = writer in naming.also or any(_pattern(one).fullmatch(writer) for one in naming.writers.values())
    return known and any(_pattern(one).fullmatch(reader) for one in naming.readers.values())


def shown(name: object) -> str:
    """A name from a file in quotes, shortened."""
    text = repr(name)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


Part = tuple[str, dict[str, str]]
"""A kind of writer or reader, and the numbers of its layer and head, and its input."""


def _checked(edge: EdgeKey, format: str, sizes: CircuitSizes) -> tuple[Part, Part]:
    """The writer and the reader of an edge that a model of these sizes can have."""
    naming = naming_of(format)
    writer = _part(edge[0], "writer", naming, sizes)
    reader = _part(edge[1], "reader", naming, sizes)
    ours = naming_of(OURS)
    ends = str(_written(*writer, ours.writers, sizes)), str(_written(*reader, ours.readers, sizes))
    if not all_later(ends[:1], ends[1:]):
        raise FormatError(
            f"{edge[0]} does not come before {edge[1]}", hint="an edge goes from a writer to a later reader"
        )
    return writer, reader


def _part(name: str, role: str, naming: Naming, sizes: CircuitSizes) -> Part:
    """The part of the model that a name stands for."""
    if role == "writer" and name in naming.also:
        return "embed", {}
    for kind, template in (naming.writers if role == "writer" else naming.readers).items():
        if match := _pattern(template).fullmatch(name):
            fields = {field.lower(): text.lower() for field, text in match.groupdict().items()}
            _check_numbers(name, fields, sizes)
            return kind, {field: text for field, text in fields.items() if field != "last"}
    raise FormatError(f"{shown(name)} is no {role}", hint=_near(name, role, naming, sizes))


def _check_numbers(name: str, fields: Mapping[str, str], sizes: CircuitSizes) -> None:
    for field, limit in (("layer", sizes.layers), ("head", sizes.heads)):
        if field in fields and int(fields[field]) >= limit:
            raise FormatError(
                f"{name} has the {field} {fields[field]}, counted from 0, of {limit}",
                hint=f"the last {field} is {limit - 1}" if limit else f"the model has no {field}",
            )
    if "last" in fields and int(fields["last"]) != sizes.layers - 1:
        raise FormatError(
            f"{name} is the stream after layer {fields['last']}, and only the unembedding reads the stream itself",
            hint=f"write blocks.{sizes.layers - 1}.hook_resid_post" if sizes.layers else "the model has no layers",
        )


def _near(name: str, role: str, naming: Naming, sizes: CircuitSizes) -> str:
    templates = (naming.writers if role == "writer" else naming.readers).values()
    examples = [_filled(template, {"layer": "0", "head": "0", "input": "q"}, sizes) for template in templates]
    return did_you_mean(name[:LONGEST], examples, f"such as {' or '.join(examples)}")


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """The pattern of the names that a template gives."""
    pieces = re.split(r"\{(\w+)\}", template)
    parts = [f"(?P<{piece}>{FIELDS[piece]})" if place % 2 else re.escape(piece) for place, piece in enumerate(pieces)]
    return re.compile("".join(parts))


def _written(kind: str, fields: Mapping[str, str], templates: Mapping[str, str], sizes: CircuitSizes) -> str | None:
    """The name of a part, or `None` if these templates have none."""
    return _filled(templates[kind], fields, sizes) if kind in templates else None


def _filled(template: str, fields: Mapping[str, str], sizes: CircuitSizes) -> str:
    return template.format(last=sizes.layers - 1, INPUT=fields.get("input", "").upper(), **fields)
