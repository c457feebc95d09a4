"""The two case studies of the paper's section 5: `frac_prevs` (D = 14) and `sort_unique`."""

from __future__ import annotations

from tracr.compress.task import all_inputs
from tracr.craft.numerics import GAP
from tracr.errors import TracrError
from tracr.ir.options import Options
from tracr.model.compiled import CompiledModel
from tracr.model.compiling import compile_model
from tracr.rasp import programs, rasp
from tracr.values import Value

__all__ = ["STUDIES", "study"]

STUDIES = ("frac_prevs", "sort_unique")


def study(name: str, gap: float = GAP) -> tuple[CompiledModel, list[list[Value]]]:
    """A model of the paper, compiled at level 0, and the inputs for its compression.

    `frac_prevs` over a, b, c, x on all 1,024 inputs of length 5; `sort_unique` over 1 to 4 on the 24 inputs of
    length 3 without repetition (all inputs of length 4 would have the same output).
    """
    if name == "frac_prevs":
        program = programs.make_frac_prevs((rasp.tokens == "x").named("is_x")).named("frac_prevs")
        vocab: tuple[Value, ...] = ("a", "b", "c", "x")
        longest = 5
    elif name == "sort_unique":
        program = programs.make_sort_unique(rasp.tokens, rasp.tokens).named("sort")
        vocab, longest = (1, 2, 3, 4), 3
    else:
        raise TracrError(f"the paper has no case study {name!r}", hint=f"it has {', '.join(STUDIES)}")
    model = compile_model({name: program}, Options(vocab, longest, level=0, gap=gap))
    return model, all_inputs(model, lengths=[longest], distinct=name == "sort_unique")
