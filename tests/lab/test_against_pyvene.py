"""DAS against pyvene's: swaps for the same weights, and what training reaches (extra `lab-compare`)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.lab.test_variables import TWINS, asked
from tracr.lab.methods import run_method
from tracr.lab.variables import VARIABLE_METHODS, interchange_accuracy
from tracr.lab.variables.boundless_das import _swap
from tracr.lab.variables.found import FoundVariable, LinearSubspace

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch", exc_type=ImportError)
    pyvene = pytest.importorskip("pyvene", exc_type=ImportError)

WIDTH, SIZE = 9, 3


def streams() -> tuple[np.ndarray, np.ndarray]:
    """Two batches of streams."""
    first, second = np.random.default_rng(0).normal(size=(2, 5, 4, WIDTH)).astype(np.float32)
    return first, second


def test_das_swaps_as_pyvene_does() -> None:
    """base + (source - base) Q Qᵀ."""
    torch.manual_seed(1)
    theirs = pyvene.LowRankRotatedSpaceIntervention(embed_dim=torch.tensor(WIDTH), low_rank_dimension=SIZE)
    base, source = streams()
    wanted = theirs(torch.tensor(base), torch.tensor(source)).detach().numpy()
    basis = theirs.rotate_layer.weight.detach().numpy().T
    got = LinearSubspace(basis.astype(np.float64)).swapped(base, source)
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    assert not np.allclose(wanted, base, atol=0.1)


def test_boundless_das_swaps_as_pyvene_does_at_the_end() -> None:
    """With a cold mask the directions before the boundary are swapped in both; warm masks differ."""
    pytest.importorskip("jax")
    torch.manual_seed(2)
    theirs = pyvene.BoundlessRotatedSpaceIntervention(embed_dim=torch.tensor(WIDTH))
    theirs.set_temperature(torch.tensor(1e-3))
    theirs.intervention_boundaries.data = torch.tensor([3.5 / WIDTH])
    base, source = streams()
    given = (torch.tensor(part.reshape(-1, WIDTH)) for part in (base, source))
    wanted = theirs(*given).detach().numpy().reshape(base.shape)
    matrix = theirs.rotate_layer.weight.detach().numpy()
    # their direction 0 is at the lower border, with half a mask: both are compared without it
    kept = matrix[:, 1:4]
    half = matrix[:, :1]
    got = LinearSubspace(kept.T.astype(np.float64)).swapped(base, source) + 0.5 * (source - base) @ half @ half.T
    np.testing.assert_allclose(got, wanted, atol=1e-4)
    ours = _swap({"matrix": matrix, "boundary": np.log(4 / (WIDTH - 4))}, base, source, np.array(1.0))
    signs = LinearSubspace(np.linalg.qr(matrix)[0].T[:4].astype(np.float64)).swapped(base, source)
    np.testing.assert_allclose(np.asarray(ours), signs, atol=0.5)


@pytest.mark.parametrize("realisation", ["rotated", "twin"])
def test_both_reach_the_same_when_trained(realisation: str) -> None:
    """At the place that our DAS chose: held-out interchange accuracies are near, and above a random one's."""
    pytest.importorskip("jax")
    subject, training, examination = asked("hist", realisation, twins=TWINS)
    ours = run_method(VARIABLE_METHODS["das"], subject, training).scores["hist"]
    size = len(ours.featuriser.basis)
    theirs, start = (
        FoundVariable(ours.place, LinearSubspace(_trained_by_pyvene(subject, training, ours.place, size, steps)))
        for steps in (200, 0)
    )
    reached = [
        interchange_accuracy(one, examination.questions[0], examination.network, examination.output) or 0.0
        for one in (ours, theirs, start)
    ]
    assert abs(reached[0] - reached[1]) < 0.1, reached
    assert min(reached[:2]) > reached[2] + 0.2, reached


def _trained_by_pyvene(subject: Any, data: Any, place: str, size: int, steps: int) -> np.ndarray:
    """The rows of pyvene's rotation after training on the pairs of `hist`, through our model in PyTorch."""
    torch.manual_seed(3)
    model = subject.model.to_torch()
    swap = pyvene.LowRankRotatedSpaceIntervention(embed_dim=torch.tensor(data.network.width), low_rank_dimension=size)
    optimiser = torch.optim.Adam(swap.parameters(), lr=0.02)
    pairs, output = data.questions[0].pairs, data.output
    base, source, swapped, answers = map(torch.tensor, (pairs.base, pairs.source, pairs.swapped, pairs.answers))
    other: dict[str, Any] = {}

    def hook(module: Any, inputs: Any, stream: Any) -> Any:
        if "stream" not in other:
            other["stream"] = stream.detach()
            return stream
        return torch.where(swapped[rows][..., None], swap(stream, other["stream"]), stream)

    dict(model.named_modules())[place].register_forward_hook(hook)
    for _ in range(steps):
        rows = torch.randint(len(base), (32,))
        other.clear()
        model(source[rows])
        logits = model(base[rows])[:, 1:, output.start : output.stop]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), answers[rows][:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return np.asarray(swap.rotate_layer.weight.detach().numpy().T, dtype=np.float64)
