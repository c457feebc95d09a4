"""Natural models: trained transformers whose circuit is known (docs/natural.md).

sites.py         nodes and edges of a transformer
network.py       the forward pass with interventions, in JAX
answers.py       answers, and the loss of wrong ones
defined.py       whether an intervention has a true answer
teacher.py       the compiled model as a teacher
lessons.py       banks of interventions with the teacher's answers
hints.py         what the teacher's components hold under interventions, as targets for a twin's
starts.py        the weights that training begins with
training.py      interchange distillation, all seeds together
examiner.py      measurements of twins on lessons and on inputs
admission.py     the measurement that decides which nodes and edges are known
architecture.py  the twin's sizes and functions; activations.py, the functions of neurons
distilling.py    `twin` and `twins`: training until admitted
finishing.py     `finish`: further training of twins that were nearly admitted
many.py          twins of many programs, saved and resumed; cases.py lists programs with their sizes
unread.py        `decoys`: further variables that no output reads
softening.py     `soften`: soft attention, and slopes in place of plateaus; soft_errors.py measures the errors
backing_up.py    `backup`: a second computation of a variable; `redundancies`: its acceptable circuits
output_circuits.py  `output_edges`: the edges that lead to one of several outputs
edge_patching.py exact edge patching of twins: the AUROC of needed against inert edges
saturation.py    `gradients`: the parameters of a compiled model that get no gradient
reading_back.py  `read_back`: changed weights as changes of the program; owned_weights.py, the owner of each weight
twin_model.py    `TwinModel`; truth.py is its ground truth, saving.py and checkpoint.py write to disk
in_torch.py, in_transformer_lens.py, in_jax.py, in_onnx.py, pretrained.py
                 twins in other frameworks; formats.py, in which number formats; refusals.py, what twins lack
learned/         `learned_parts`: every head and MLP trained alone, then assembled; `LearnedModel`
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tracr.extras import need

__all__ = [
    "Admission",
    "Gradients",
    "LearnedModel",
    "LearnedPart",
    "PartProgress",
    "Progress",
    "ReadBack",
    "Redundancy",
    "SoftnessReport",
    "TwinModel",
    "backup",
    "decoys",
    "edge_auroc",
    "edge_aurocs",
    "finish",
    "gradients",
    "learned_parts",
    "output_edges",
    "read_back",
    "redundancies",
    "soften",
    "softness",
    "twin",
    "twins",
]

if TYPE_CHECKING:
    from tracr.natural.admission import Admission
    from tracr.natural.backing_up import Redundancy, backup, redundancies
    from tracr.natural.distilling import Progress, twin, twins
    from tracr.natural.edge_patching import edge_auroc, edge_aurocs
    from tracr.natural.finishing import finish
    from tracr.natural.learned.learning import PartProgress, learned_parts
    from tracr.natural.learned.model import LearnedModel, LearnedPart
    from tracr.natural.output_circuits import output_edges
    from tracr.natural.reading_back import ReadBack, read_back
    from tracr.natural.saturation import Gradients, gradients
    from tracr.natural.softening import SoftnessReport, soften, softness
    from tracr.natural.twin_model import TwinModel
    from tracr.natural.unread import decoys
else:
    LAZY = {
        "Admission": "tracr.natural.admission",
        "Gradients": "tracr.natural.saturation",
        "LearnedModel": "tracr.natural.learned.model",
        "LearnedPart": "tracr.natural.learned.model",
        "PartProgress": "tracr.natural.learned.learning",
        "Progress": "tracr.natural.distilling",
        "Redundancy": "tracr.natural.backing_up",
        "SoftnessReport": "tracr.natural.softening",
        "ReadBack": "tracr.natural.reading_back",
        "TwinModel": "tracr.natural.twin_model",
        "backup": "tracr.natural.backing_up",
        "decoys": "tracr.natural.unread",
        "edge_auroc": "tracr.natural.edge_patching",
        "edge_aurocs": "tracr.natural.edge_patching",
        "finish": "tracr.natural.finishing",
        "gradients": "tracr.natural.saturation",
        "learned_parts": "tracr.natural.learned.learning",
        "output_edges": "tracr.natural.output_circuits",
        "redundancies": "tracr.natural.backing_up",
        "soften": "tracr.natural.softening",
        "softness": "tracr.natural.softening",
        "read_back": "tracr.natural.reading_back",
        "twin": "tracr.natural.distilling",
        "twins": "tracr.natural.distilling",
    }

    def __getattr__(name: str) -> Any:
        """Names imported on first use, because training needs JAX."""
        if name in LAZY:
            try:
                module = importlib.import_module(LAZY[name])
            except ModuleNotFoundError as error:
                if error.name and error.name.partition(".")[0] != "tracr":
                    need(error.name, "jax")  # says how to install the library that the module imports
                raise
            return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
