"""What is probed of a backend: its product of matrices, and its attention softmax(q kᵀ) v, on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracr.errors import MissingExtra
from tracr.extras import need
from tracr.ir.domains import Finite
from tracr.ir.parameters import LayerParameters, Parameters
from tracr.rasp.annotations import Encoding
from tracr.runtime.kernel.kernel import BUILT, Kernel
from tracr.runtime.outputs import Output
from tracr.runtime.vocabulary import Vocabulary
from tracr.version import __version__

__all__ = ["BACKENDS", "Backend", "jax_backend", "numpy_backend", "torch_backend", "torch_sdpa"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Backend:
    """`product(a [n, k], b [k, m])` and `attend(q [n, d], k [m, d], v [m, e])`; results are in float64.

    The inputs are numbers that the format holds. `dtype` is the format: float64, float32, float16 or bfloat16.
    """

    name: str
    version: str
    dtype: str
    product: Callable[[Array, Array], Array]
    attend: Callable[[Array, Array, Array], Array]


def numpy_backend(dtype: str = "float32") -> Backend:
    """numpy, as `runtime/forward.py` uses it."""
    kind = np.dtype(dtype)

    def product(a: Array, b: Array) -> Array:
        return np.asarray(a.astype(kind) @ b.astype(kind), np.float64)

    def attend(q: Array, k: Array, v: Array) -> Array:
        scores = q.astype(kind) @ k.astype(kind).T
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.asarray((weights / weights.sum(axis=-1, keepdims=True)) @ v.astype(kind), np.float64)

    return Backend("numpy", np.__version__, dtype, product, attend)


def kernel_backend() -> Backend:
    """The C kernel, which runs whole networks: one that multiplies, and one whose only head attends."""
    if not BUILT:
        raise MissingExtra("the C kernel was not built", hint="install tracr where there is a C compiler")
    return Backend("kernel", __version__, "float32", _kernel_product, _kernel_attend)


def _kernel_logits(weights: Parameters, ids: Array) -> Array:
    """The kernel's logits; the vocabulary and the output only have the right sizes."""
    tokens = tuple(range(len(weights.W_E) - 2))
    vocabulary = Vocabulary(tokens, "BOS", "PAD", 1, len(weights.W_pos) - 1)
    columns = int(weights.W_U.shape[1])
    output = Output("probe", Encoding.CATEGORICAL, Finite(tuple(range(columns))), 0, columns, 0.0)
    return Kernel(weights, vocabulary, [output], causal=False).logits(ids)[0].astype(np.float64)


def _kernel_product(a: Array, b: Array) -> Array:
    """Rows of `a` as embeddings and `b` as the unembedding."""
    width = a.shape[1]
    embedding = np.vstack([a, np.zeros((2, width))])
    return _kernel_logits(Parameters(embedding, np.zeros((1, width)), (), b), np.arange(len(a))[:, None])[:, 0]


def _kernel_attend(q: Array, k: Array, v: Array) -> Array:
    """One head over streams that hold q, k and v side by side; a query takes part as a key with score −10⁹."""
    (n, d), (m, e) = q.shape, v.shape
    width = 2 * d + 2 * e + 1
    stream = np.zeros((n + m + 2, width))
    stream[:n, :d], stream[n : n + m, d : 2 * d], stream[n : n + m, 2 * d : 2 * d + e] = q, k, v
    stream[:n, -1] = -1e9  # the queries' own keys
    inside = max(d + 1, e)  # queries, keys and values of a head have one width
    (w_q, w_k, w_v), w_o = np.zeros((3, 1, width, inside)), np.zeros((1, inside, width))
    for place in range(d):
        w_q[0, place, place] = w_k[0, d + place, place] = 1.0
    w_k[0, -1, d] = 1.0
    for place in range(e):
        w_v[0, 2 * d + place, place] = w_o[0, place, 2 * d + e + place] = 1.0
    b_q, b_k, b_v = np.zeros((3, 1, inside))
    b_q[0, d] = 1.0
    none = np.zeros((width, 0)), np.zeros(0), np.zeros((0, width)), np.zeros(width)
    layer = LayerParameters(w_q, b_q, w_k, b_k, w_v, b_v, w_o, np.zeros(width), *none)
    unembedding = np.eye(width)[:, 2 * d + e : 2 * d + 2 * e]
    weights = Parameters(stream, np.zeros((m + 1, width)), (layer,), unembedding)
    keys = np.broadcast_to(np.arange(n, n + m), (n, m))
    return _kernel_logits(weights, np.hstack([np.arange(n)[:, None], keys]))[:, 0]


def torch_backend(dtype: str = "float32", device: str = "cpu") -> Backend:
    """torch with one kernel for each operation, as in `to_torch`."""
    torch = need("torch")

    def tensor(array: Array) -> Any:
        return torch.tensor(array, dtype=torch.float64, device=device).to(getattr(torch, dtype))

    def product(a: Array, b: Array) -> Array:
        return back(tensor(a) @ tensor(b))

    def attend(q: Array, k: Array, v: Array) -> Array:
        return back(torch.softmax(tensor(q) @ tensor(k).T, -1) @ tensor(v))

    def back(found: Any) -> Array:
        return np.asarray(found.double().cpu().numpy())

    return Backend(f"torch {device}", torch.__version__, dtype, product, attend)


def torch_sdpa(dtype: str = "float32", device: str = "cpu", kernel: str = "") -> Backend:
    """torch's fused attention; `kernel` is one of its backends (MATH, EFFICIENT_ATTENTION, FLASH_ATTENTION, ...)."""
    torch = need("torch")
    plain = torch_backend(dtype, device)

    def tensor(array: Array) -> Any:
        padded = np.pad(array, ((0, 0), (0, -array.shape[1] % 8)))  # fused kernels want widths that 8 divides
        return torch.tensor(padded, dtype=torch.float64, device=device).to(getattr(torch, dtype))[None, None]

    def run(q: Array, k: Array, v: Array) -> Any:
        attention = torch.nn.functional.scaled_dot_product_attention
        wide = max(a.shape[1] for a in (q, k, v))  # and one width for all
        q, k, v = (np.pad(a, ((0, 0), (0, wide - a.shape[1]))) for a in (q, k, v))
        return attention(tensor(q), tensor(k), tensor(v), scale=1.0)

    def attend(q: Array, k: Array, v: Array) -> Array:
        if not kernel:
            found = run(q, k, v)
        else:
            from torch.nn.attention import SDPBackend, sdpa_kernel

            with sdpa_kernel(getattr(SDPBackend, kernel)):
                found = run(q, k, v)
        return np.asarray(found[0, 0].double().cpu().numpy())[:, : v.shape[1]]

    name = f"torch-sdpa {device}{f' {kernel}' if kernel else ''}"
    return Backend(name, torch.__version__, dtype, plain.product, attend)


def jax_backend(dtype: str = "float32", precision: str | None = None) -> Backend:
    """JAX, compiled; `precision` is that of its products ("highest" on a GPU avoids TF32)."""
    jax, jnp = need("jax"), need("jax.numpy")
    device = jax.devices()[0].platform

    def multiply(a: Any, b: Any) -> Any:
        return jnp.matmul(a, b, precision=precision)

    def attention(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.matmul(q, k.T, precision=precision), -1)
        return jnp.matmul(weights, v, precision=precision)

    def called(function: Any, *arrays: Array) -> Array:
        with jax.enable_x64(dtype == "float64"):
            found = function(*(jnp.asarray(array, dtype) for array in arrays))
            return np.asarray(found if dtype == "float64" else found.astype("float32"), np.float64)

    compiled = jax.jit(multiply), jax.jit(attention)
    name = f"jax {device}{f' precision={precision}' if precision else ''}"
    return Backend(
        name,
        jax.__version__,
        dtype,
        lambda a, b: called(compiled[0], a, b),
        lambda q, k, v: called(compiled[1], q, k, v),
    )


def onnxruntime_backend(dtype: str = "float32") -> Backend:
    """onnxruntime on the CPU, with a graph for each of the two."""
    runtime, onnx = need("onnxruntime"), need("onnx")
    helper = need("onnx.helper")
    kind = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE}[dtype]

    def session(inputs: str, nodes: list[Any]) -> Any:
        given = [helper.make_tensor_value_info(name, kind, [None, None]) for name in inputs]
        out = helper.make_tensor_value_info("out", kind, [None, None])
        graph = helper.make_graph(nodes, "probe", given, [out])
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])

    node = helper.make_node
    multiply = session("ab", [node("MatMul", ["a", "b"], ["out"])])
    attention = session(
        "qkv",
        [
            node("Transpose", ["k"], ["t"], perm=[1, 0]),
            node("MatMul", ["q", "t"], ["s"]),
            node("Softmax", ["s"], ["p"], axis=-1),
            node("MatMul", ["p", "v"], ["out"]),
        ],
    )

    def run(graph: Any, **arrays: Array) -> Array:
        return np.asarray(graph.run(None, {name: array.astype(dtype) for name, array in arrays.items()})[0], np.float64)

    return Backend(
        "onnxruntime",
        runtime.__version__,
        dtype,
        lambda a, b: run(multiply, a=a, b=b),
        lambda q, k, v: run(attention, q=q, k=k, v=v),
    )


ALL = ("float64", "float32", "float16", "bfloat16")
BACKENDS: dict[str, tuple[Callable[[str], Backend], tuple[str, ...]]] = {
    "numpy": (numpy_backend, ("float64", "float32")),
    "kernel": (lambda dtype: kernel_backend(), ("float32",)),
    "torch": (torch_backend, ALL),
    "torch-sdpa": (torch_sdpa, ALL),
    "jax": (jax_backend, ALL),
    "onnxruntime": (onnxruntime_backend, ("float64", "float32")),
}
"""The backends of `tracr certify --probe`, on the CPU, and the formats in which each can be probed."""
