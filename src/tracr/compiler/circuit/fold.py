"""The pass `fold`: a linear function of the residual stream needs no neurons and no directions.

A table of a one-hot code is linear (relu(x) = x for 0 and 1), and so is a weighted sum of numbers that are never
`None`. The readers of the result can read its inputs instead, through the product of the two matrices. Readers are the
queries, keys and values of heads, neurons, and the unembedding; the unembedding has no bias and cannot add a constant.
`Circuit.through` records the matrices with which readers read folded variables: with them an intervention can still set
a folded variable.
"""

from __future__ import annotations

from dataclasses import replace

from tracr.craft.linear import ONE, LinearMap
from tracr.craft.mlps import MLP
from tracr.craft.variables import Variable
from tracr.ir.circuit import Circuit, Component, through_used

__all__ = ["fold"]


def fold(circuit: Circuit) -> Circuit:
    """The circuit without the MLPs that were folded into their readers; `folded` has the maps read instead."""
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
    """The variables folded so far, and the matrices with which maps read them."""

    def __init__(self) -> None:
        self.folded: dict[Variable, LinearMap] = {}
        self.through: dict[LinearMap, LinearMap] = {}

    def read(self, linear: LinearMap) -> LinearMap:
        """The map with folded variables replaced by their inputs."""
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
