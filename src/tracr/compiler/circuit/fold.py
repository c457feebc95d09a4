"""Linear folding: a linear function of what the residual stream holds needs no neurons and no directions.

A table of a one-hot code is linear (relu(x) = x for 0 and 1), and so is a weighted sum of numbers that are never
`None`. Whoever reads the result can read what it is made of instead, through the product of the two matrices: queries,
keys and values of heads, neurons, and the unembedding, which has no bias, unless a constant is added. The maps remember
what they read folded variables with (`LinearMap.through`), so that these can be set as if they were there.
"""

from __future__ import annotations

from dataclasses import replace

from tracr.craft.linear import ONE, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Variable
from tracr.ir.circuit import Circuit, Component

__all__ = ["fold"]

Folded = dict[Variable, LinearMap]


def fold(circuit: Circuit) -> Circuit:
    """The same circuit without the MLPs whose readers can do without them; `folded` says what they read instead."""
    folded: Folded = {}
    kept: list[Component] = []
    outputs = {variable for _, variable in circuit.outputs}
    for component in circuit.components:
        match component:
            case MLP(linear=LinearMap() as linear, writes=((variable, _),)):
                linear = _through(linear, folded)
                if variable not in outputs or ONE not in linear.blocks:
                    folded[variable] = linear
                    continue
        kept.append(component.with_maps([_through(linear, folded) for linear in component.maps]))
    variables = tuple(variable for variable in circuit.variables if variable not in folded)
    read = {variable: rows for variable, rows in circuit.read.items() if variable not in folded}
    return replace(circuit, components=tuple(kept), variables=variables, folded=folded, read=read)


def _through(linear: LinearMap, folded: Folded) -> LinearMap:
    """The same map, reading what folded variables are made of."""
    if folded.keys().isdisjoint(linear.blocks):
        return linear
    kept = {variable: block for variable, block in linear.blocks.items() if variable not in folded}
    total = LinearMap(kept, linear.width, linear.through)
    for variable, block in linear.blocks.items():
        if variable in folded:
            total = total + folded[variable].then(block) + LinearMap({}, linear.width, {variable: block})
    return total
