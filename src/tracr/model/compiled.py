"""The compiled model: a compilation, and running it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from tracr.ir.compilation import Compilation
from tracr.ir.parameters import Parameters
from tracr.model.designed import DesignedModel, outputs_of
from tracr.model.setting import Intervention
from tracr.model.variants.basis import Axes
from tracr.model.variants.variant import Variant
from tracr.runtime.outputs import Output

__all__ = ["CompiledModel"]


@dataclass(frozen=True, eq=False, repr=False)
class CompiledModel(DesignedModel):
    """A transformer that computes a RASP program, with the compiler's own weights.

    `compilation` has the results of all steps of the compiler. `source` is the text of the program, if it is known.
    """

    compilation: Compilation
    source: str = field(default="")

    @property
    def plain(self) -> CompiledModel:
        """The model itself."""
        return self

    @property
    def labelled(self) -> CompiledModel:
        """The model itself: every label has a dimension."""
        return self

    @property
    def certified(self) -> bool:
        """True: the weights are the compiler's own."""
        return True

    @property
    def parameters(self) -> Parameters:
        """The weights."""
        return self.compilation.parameters

    @cached_property
    def variant(self) -> Variant:
        """No changes; the labels are written along the axes of the residual stream."""
        return Variant((), Axes(self.layout.width))

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The program's outputs, each with the logits that encode it."""
        return outputs_of(self.compilation)

<<<<<<< HEAD
    @cached_property
    def residual(self) -> Residual:
        """The labelled dimensions of the residual stream, with writers and readers."""
        return residual_of(self.layout)

    @cached_property
    def variables(self) -> Variables:
        """The variables of the program: where the model stores each, or why it does not, and whether it can be set."""
        return variables_of(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the compilation (`strict=True` refuses them); for most programs there are none.

        An aggregate may be assumed to select equal values; on inputs where it does not, the interpreter raises. Numbers
        that differ by rounding only may be assumed to be equal; the interpreter may distinguish them.
        """
        one = [node for node in self.program.sops.values() if isinstance(node.op, Aggregation) and node.op.assumed]
        selects = (f"{node.source}: is assumed to select values that are all equal" for node in one)
        return (*selects, *(assumption.sentence for assumption in self.program.assumptions))

    def bounds(self) -> Bounds:
        """Lower bounds on the sizes of a model of these components, and its actual sizes; prints as a table."""
        found: Bounds = call("bounds", self.compilation)
        return found

    def show(self, stage: str = "assemble") -> str:
        """The text of a stage: trace, infer, lower (or translate), schedule, layout (or construct), assemble.

        "variables" lists the variables of the program with their states in the model.
        """
        stages: dict[str, Any] = {
            "trace": self.graph,
            "infer": self.program,
            "lower": self.circuit,
            "translate": self.circuit,
            "schedule": self.schedule,
            "layout": self.layout,
            "construct": self.layout,
            "variables": self.variables,
        }
        arguments.one_of("stage", stage, [*stages, "assemble"])
        if stage == "assemble":
            shapes = [f"{name} {tuple(array.shape)}" for name, array in self.parameters.named()]
            return "\n".join([repr(self), *shapes])
        return str(stages[stage].show())

    # The directions of the labels

    @cached_property
    def basis(self) -> Basis:
        """The directions of the labelled coordinates: the axes of the residual stream, or those of a variant."""
        return self.variant.basis if self.variant else Axes(self.layout.width)

    @property
    def directions(self) -> NDArray[Any]:
        """The directions [d_model] along which the labels of `residual` are written, a row each."""
        return self.basis.write

    @property
    def read_directions(self) -> NDArray[Any]:
        """The vectors that read the labels of `residual` from the residual stream, a column [d_model] each.

        `stream @ read_directions` gives the coordinates. With layer norms the columns include the anchor, and
        `normalised(stream) @ read_directions` gives the coordinates too. `directions @ read_directions` is the
        identity.
        """
        return self.basis.read

    def coordinates(self, stream: Any) -> Any:
        """The coordinate of each label of `residual` in a residual stream [..., d_model].

        The stream may be a numpy array, a torch tensor or a JAX array, on any device; the result has the same type.
        """
        return self.basis.get(stream_of(stream, self.d_model), range(self.layout.width))

    @property
    def made_for(self) -> str:
        """The number format that the compiler made these weights for; variants are made for float32."""
        return self.options.dtype if self.certified and self.variant is None else "float32"

    @property
    def norm(self) -> LayerNorm | None:
        """The layer norm before every reader of the residual stream, or `None`."""
        return self.variant.layer_norm if self.variant else None

    def normalised(self, stream: Any) -> Any:
        """The residual stream, of any framework, as its readers see it: after the layer norm, if the model has one."""
        return self.norm(as_tensor(stream), namespace_of(stream)) if self.norm else stream

    # Other weights

    @cached_property
    def plain(self) -> CompiledModel:
        """The model as it was compiled; for a variant, the compiled model that it was made from."""
        if self.variant is None and self.certified:
            return self
        return replace(self, changed=None, variant=None, certified=True)

    @cached_property
    def labelled(self) -> CompiledModel:
        """The model with one dimension per label; for a variant, with its weights (and noise) in this basis."""
        if self.variant is None:
            return self
        weights = in_basis(self.parameters, self.basis.read, self.basis.write)
        return replace(self, changed=weights, variant=None, certified=self.certified and not self.variant.noise)

    def __copy__(self) -> Self:
        return replace(self)

    def __deepcopy__(self, memo: object) -> Self:
        """The model with a copy of the weights; immutable parts are shared."""
        return replace(self, changed=self.parameters.map(np.copy))

    def __repr__(self) -> str:
        names = ", ".join(output.name for output in self.outputs)
        layers = f"{self.n_layers} layer{'s' if self.n_layers != 1 else ''}"
        steps = "".join(f", {step}" for step in self.variant.steps) if self.variant else ""
        note = "" if self.certified else ", not certified"
        stored = f", {self.options.dtype}" if self.options.format.short else ""
        return (
            f"CompiledModel({names}: {layers}, {self.d_model} dimensions, "
            f"{self.n_parameters:,} parameters, level {self.options.level}{stored}{steps}{note})"
        )
=======
    def _holding(self, parameters: Parameters) -> Self:
        return replace(self, compilation=replace(self.compilation, parameters=parameters))
>>>>>>> main

    def _intervention(
        self, changes: object, inputs: list[list[Any]], padded: list[int], *, single: bool
    ) -> Intervention:
        return Intervention(self, changes, inputs, padded, single=single, checked=True)
