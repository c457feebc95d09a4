"""Swaps of DAS and boundless DAS against pyvene's, for the same weights (extra `lab-compare`)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tracr.lab.variables.boundless_das import _swap
from tracr.lab.variables.found import LinearSubspace

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
