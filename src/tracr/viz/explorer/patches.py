"""The patches that a page starts with: `explore(tokens, set={variable: values})`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracr.errors import InputError
from tracr.ir.domains import Domain, Finite
from tracr.model.interventions import locations
from tracr.model.stream import variable_values
from tracr.nearness import same_value
from tracr.spelling import did_you_mean
from tracr.values import Value, value_text
from tracr.viz.explorer.data import absorbed_variables

if TYPE_CHECKING:
    from tracr.model.designed import DesignedModel

__all__ = ["patches_of"]


def patches_of(
    model: DesignedModel, tokens: Sequence[Value], changes: Mapping[str, Sequence[Any]]
) -> list[tuple[str, int, str]]:
    """A patch (variable, position, value as text) wherever a value given is not the one computed.

    Refuses what `model.run(tokens, set=changes)` refuses, and variables that have no directions in the page.
    """
    model.run(tokens, set=changes)
    domains = {node.label: node.domain for node in model.program.sops.values()}
    shown = sorted(locations(model.program, model.layout).keys() & domains.keys() - absorbed_variables(model).keys())
    usual = variable_values(model, list(tokens))
    found = []
    for label, values in changes.items():
        if label not in shown:
            hint = did_you_mean(label, shown, f"these can be: {', '.join(shown)}")
            raise InputError(f"the page cannot patch {label}: it has no directions of its own", hint=hint)
        pairs = zip(usual[label], list(values)[: len(tokens)], strict=True)
        found += [
            (label, position, _text(domains[label], value))
            for position, (before, value) in enumerate(pairs)
            if not same_value(before, value)
        ]
    return found


def _text(domain: Domain, value: Value) -> str:
    """The text of a value as the page writes it."""
    return value_text(domain.values[domain.index[value]]) if isinstance(domain, Finite) else repr(value)
