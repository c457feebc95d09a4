"""Linear folding: a linear function of what the residual stream holds needs no neurons and no directions.

A table of a one-hot code is linear (relu(x) = x for 0 and 1), and so is a weighted sum of numbers that are never
`None`. Whoever reads the result can read what it is made of instead, through the product of the two matrices: queries,
keys and values of heads, neurons, and the unembedding, which has no bias, unless a constant is added. `Circuit.through`
says what they read folded variables with, so that these can be set as if they were there.
"""

from __future__ import annotations

from dataclasses import replace

from tracr.craft.linear import ONE, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Variable
from tracr.ir.circuit import Circuit, Component, through_used

__all__ = ["fold"]


def fold(circuit: Circuit) -> Circuit:
    """The same circuit without the MLPs whose readers can do without them; `folded` says what they read instead."""
    folding = _Folding()
    kept: list[Component] = []
    outputs = {variable for _, variable in circuit.outputs}
    for component in circuit.components:
        match component:
            case MLP(linear=LinearMap() as linear, writes=((variable, _),)):
                linear = folding.read(linear)
                if variable not in outputs or ONE not in linear.blocks:
                    folding.folded[variable] = linear
                    continue
        kept.append(component.with_maps([folding.read(linear) for linear in component.maps]))
    folded = folding.folded
    variables = tuple(variable for variable in circuit.variables if variable not in folded)
    read = {variable: rows for variable, rows in circuit.read.items() if variable not in folded}
    through = through_used(folded, folding.through, (linear for component in kept for linear in component.maps))
    return replace(circuit, components=tuple(kept), variables=variables, folded=folded, read=read, through=through)


class _Folding:
    """The variables that were folded so far, and what maps read them with."""

    def __init__(self) -> None:
        self.folded: dict[Variable, LinearMap] = {}
        self.through: dict[LinearMap, LinearMap] = {}

    def read(self, linear: LinearMap) -> LinearMap:
        """The same map, reading what folded variables are made of."""
        if self.folded.keys().isdisjoint(linear.blocks):
            return linear
        kept = {variable: block for variable, block in linear.blocks.items() if variable not in self.folded}
        total, through = LinearMap(kept, linear.width), LinearMap({}, linear.width)
        for variable, block in linear.blocks.items():
            if variable in self.folded:
                made_of = self.folded[variable]
                total = total + made_of.then(block)
                if made_of in self.through:
                    through = through + self.through[made_of].then(block)
                through = through + LinearMap.of(variable, block)
        self.through[total] = through
        return total
