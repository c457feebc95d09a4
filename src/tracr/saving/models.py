"""Saves a model as a folder of safetensors and JSON, and loads it. `docs/format.md` is the schema.

A folder holds the weights and the tabulated program. Loading runs the compiler's later steps, which are pure, on the
tabulated program. This restores every stage and checks that the weights belong to the program. No code is loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from tracr.arguments import flag
from tracr.arguments import path as as_path
from tracr.compiler.lower.bits import many_valued
from tracr.compiler.pipeline import compile_tabulated
from tracr.errors import FormatError, MissingExtra, TracrError
from tracr.ir.domains import Finite
from tracr.ir.options import Options
from tracr.ir.parameters import Parameters
from tracr.ir.program import Program
from tracr.ir.switches import PassName
from tracr.model.compiled import CompiledModel
from tracr.model.designed import DesignedModel
from tracr.model.variants.variant import Variant, in_basis
from tracr.model.variants.variant_model import VariantModel, with_other_weights
from tracr.model.weights import with_weights
from tracr.nearness import margin
from tracr.rasp.annotations import Encoding
from tracr.saving.folders import read_file, write_folder
from tracr.saving.json_reader import Reader, parse
from tracr.saving.program_json import (
    graph_json,
    options_json,
    program_json,
    program_tables,
    read_graph,
    read_options,
    read_program,
)
from tracr.saving.schedule_json import read_schedule, schedule_json
from tracr.saving.values_json import encode_value
from tracr.saving.variant_json import basis_tensors, read_variant, variant_json
from tracr.version import __version__
from tracr.writing import written_to

__all__ = [
    "VERSION",
    "as_variant",
    "check_target",
    "files_of",
    "is_saved_model",
    "load",
    "load_compiled",
    "save",
    "with_saved_weights",
]

FORMAT, VERSION = "tracr model", 1
MANIFEST, MODEL, WEIGHTS, TABLES = "manifest.json", "model.json", "weights.safetensors", "tables.safetensors"
CONTENT = (MODEL, WEIGHTS, TABLES)
CERTIFICATE_FILES = ("certificate.json", "verdict.json")  # written and read by `tracr.certificate`
SMALL, LARGE = 2**16, 2**28  # most bytes of a manifest; of a JSON file or of all tables
HEADER = 2**26  # most bytes of names and shapes in a safetensors file
PARAMETERS = 250_000_000
OWN = ("own_weights", "certified")  # false for changed weights; earlier versions wrote the second key
SIGMAS = 8.0  # a bound of the noise in standard deviations; a new direction can add the noise of all dimensions


def save(model: DesignedModel, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write the model into `folder`, completely or not at all.

    An existing folder is replaced if it is empty or a saved model without other files; any other folder is replaced
    only with `overwrite`.
    """
    save_files(model, folder, overwrite, {})


def save_files(model: DesignedModel, folder: str | Path, overwrite: bool, more: Mapping[str, bytes]) -> None:
    """Write the model, and more files (those of a certificate), into `folder`."""
    flag("overwrite", overwrite, error=FormatError)
    path = as_path("folder", folder, error=FormatError).resolve()
    with written_to(path):
        held = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
        check_target(path, overwrite, held <= {MANIFEST, *CONTENT, *CERTIFICATE_FILES} and is_saved_model(path))
    write_folder(path, {**files_of(model), **more})


def files_of(model: DesignedModel) -> dict[str, bytes]:
    """The files of a saved model."""
    weights = {name: np.ascontiguousarray(array) for name, array in model.parameters.named()}
    program, tables = program_files(model)
    content = {MODEL: program, WEIGHTS: safetensors.numpy.save(weights), TABLES: tables}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "tracr": __version__,
        "files": {name: {"bytes": len(data), "sha256": _digest(data)} for name, data in content.items()},
    }
    return {**content, MANIFEST: json.dumps(manifest, indent=2).encode() + b"\n"}


def program_files(model: DesignedModel) -> tuple[bytes, bytes]:
    """The saved form of a model without its weights: JSON, and tables as safetensors."""
    basis = basis_tensors(model.variant) if model.variant.steps else {}
    return _dump(_model_json(model)), safetensors.numpy.save({**program_tables(model.program), **basis})


def load(folder: str | Path, *, recompile: bool = False, max_parameters: int = PARAMETERS) -> DesignedModel:
    """Load a model written by `save`; `tracr.load` also reads other kinds of saved models.

    Args:
        folder: the folder of the model.
        recompile: use the weights that this version of the compiler makes from the tabulated program, not the saved.
        max_parameters: the largest model to load.

    A `FormatError` refuses a folder that is damaged, has another version, or whose weights differ from those its
    program compiles to.
    """
    with naming(Path(folder)):
        return read_folder(Path(folder), recompile, max_parameters)


def load_compiled(folder: str | Path, *, max_parameters: int = PARAMETERS) -> CompiledModel:
    """Load the compiled model that another kind of model has; a folder with other weights is refused."""
    model = load(folder, max_parameters=max_parameters)
    if not isinstance(model, CompiledModel):
        raise FormatError(f"{folder} does not hold the compiler's own weights", hint="save the model again")
    return model


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the folder of the model to errors."""
    try:
        yield
    except FormatError as error:
        hint = error.diagnostic.hint or "save the model again"
        raise FormatError(f"{path} is not a model that can be loaded: {error.diagnostic.what}", hint=hint) from None


def is_saved_model(folder: str | Path) -> bool:
    """Whether the manifest in `folder` is that of a saved model."""
    try:
        _manifest(Path(folder))
    except FormatError:
        return False
    return True


# Writing


def check_target(path: Path, overwrite: bool, ours: bool) -> None:
    """Refuse to replace a file, a folder in use, or (without `overwrite`) a folder that is not `ours`."""
    if not path.exists():
        return
    if not path.is_dir():
        raise FormatError(f"{path} is a file, and a model is saved in a folder", hint="choose another name")
    here = Path.cwd()
    if path in (here, Path.home(), *here.parents):
        raise FormatError(f"a model replaces a whole folder, and {path} is in use", hint="name a new folder")
    held = {entry.name for entry in path.iterdir()}
    if held and not ours and not overwrite:
        raise FormatError(
            f"{path} contains something other than a saved model ({', '.join(sorted(held)[:3])})",
            hint="choose another name, or overwrite=True (--overwrite) to delete its content",
        )


def _model_json(model: DesignedModel) -> dict[str, Any]:
    content = {
        "options": options_json(model.options),
        "outputs": [[encode_value(output.name), output.start, output.stop] for output in model.outputs],
        "residual": [encode_value(dimension.label) for dimension in model.residual],
        "program": program_json(model.program),
        "graph": graph_json(model.graph),
        "source": encode_value(model.source),
        **({"schedule": schedule_json(model.schedule)} if model.options.on(PassName.SOLVE) else {}),
        **({"variant": variant_json(model.variant)} if model.variant.steps else {}),
    }
    return content if model.own_weights else {**content, "own_weights": False}


def _dump(data: object) -> bytes:
    return json.dumps(data, allow_nan=False).encode("ascii") + b"\n"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# Reading


def read_folder(path: Path, recompile: bool, max_parameters: int) -> DesignedModel:
    """The model in a folder."""
    content = _content(path, {MODEL: LARGE, WEIGHTS: 8 * max_parameters + HEADER, TABLES: LARGE})
    weights = tensors(content[WEIGHTS], WEIGHTS)
    model, own_weights = read_model(content[MODEL], content[TABLES], weights, recompile, max_parameters)
    if recompile:
        return model
    if own_weights:
        return with_saved_weights(model, weights)
    with_weights(model, weights)  # refuses what the model cannot have
    held = {name: weights[name].astype(np.float64) for name, _ in model.parameters.named()}  # those of the certificate
    return with_other_weights(model, Parameters.of(held))


def read_model(
    model_json: bytes, tables: bytes, weights: Mapping[str, NDArray[Any]], recompile: bool, max_parameters: int
) -> tuple[DesignedModel, bool]:
    """The model that the saved program compiles to, in its variant's basis; and whether it has its own weights."""
    keys = ("options", "outputs", "residual", "program", "graph", "source")
    given = parse(model_json, MODEL).object(keys, optional=(*OWN, "schedule", "variant"))
    own_weights = all(given[key].boolean() for key in OWN if key in given)
    try:
        options = read_options(given["options"])
        if options.on(PassName.SOLVE) != ("schedule" in given):
            raise FormatError(f"{MODEL} has a schedule without the pass that makes one, or the pass without a schedule")
        _check_sizes(options, weights)
        arrays = tensors(tables, TABLES)
        variant = read_variant(given["variant"], arrays) if "variant" in given else None
        program = read_program(given["program"], arrays, options)
        _check_budget(program, max_parameters)
        schedule_of = read_schedule(given["schedule"]) if "schedule" in given and not recompile else None
        compilation = compile_tabulated(read_graph(given["graph"]), program, schedule_of)
        model = CompiledModel(compilation, given["source"].text())
    except (FormatError, MissingExtra):
        raise
    except TracrError as error:
        raise FormatError(f"its program is not one the compiler makes: {error}") from None
    except Exception as error:  # a program not made by the compiler can fail in any way: a bad index, no memory
        raise FormatError(
            f"its program is not one the compiler makes: {type(error).__name__}: {error}",
            hint="load it with the version of tracr that saved it",
        ) from error
    if recompile:
        return model, own_weights
    _check_labels(model, given["residual"], given["outputs"])
    return as_variant(model, variant) if variant else model, own_weights


def as_variant(model: CompiledModel, variant: Variant) -> VariantModel:
    """The model in a variant's basis, without the variant's noise, which is not saved."""
    if len(variant.basis.write) != model.d_model:
        raise FormatError(f"its variant has a basis of {len(variant.basis.write)} labels, not {model.d_model}")
    parameters = in_basis(model.parameters, variant.basis.write, variant.basis.read)
    return VariantModel(model, parameters, variant)


def _manifest(path: Path) -> dict[str, Reader]:
    """The sizes and digests of the files, from a manifest of this format and version."""
    reader = parse(read_file(path / MANIFEST, SMALL), MANIFEST)
    if not isinstance(reader.data, dict) or reader.data.get("format") != FORMAT:
        reader.fail(f"does not say that this is a {FORMAT}")
    if reader.data.get("version") != VERSION:
        raise FormatError(
            f"it has format version {reader.data.get('version')!r:.40}, this tracr reads version {VERSION}",
            hint="load it with the version of tracr that saved it",
        )
    given = reader.object(("format", "version", "tracr", "files"))
    given["tracr"].text()
    return given["files"].object(CONTENT)


def _content(path: Path, most: Mapping[str, int]) -> dict[str, bytes]:
    """The files named in the manifest, checked against their sizes and digests."""
    content = {}
    for name, place in _manifest(path).items():
        entry = place.object(("bytes", "sha256"))
        data = read_file(path / name, most[name])
        if len(data) != entry["bytes"].integer():
            raise FormatError(f"{name} has {len(data):,} bytes, {entry['bytes'].integer():,} were saved: it is damaged")
        if _digest(data) != entry["sha256"].text():
            raise FormatError(f"{name} was changed after it was saved")
        content[name] = data
    return content


def tensors(data: bytes, name: str) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file, by name: the library gives them in another order on every run."""
    try:
        return dict(sorted(safetensors.numpy.load(data).items()))
    except Exception as error:  # safetensors raises several types, and KeyError for types unknown to numpy
        raise FormatError(f"{name} is not a safetensors file: {error}") from None


def _check_sizes(options: Options, weights: Mapping[str, NDArray[Any]]) -> None:
    """Check that the weights fit the vocabulary and length, before arrays of that size are made."""
    for name, rows in (("embed.W_E", len(options.vocab) + 2), ("pos_embed.W_pos", options.max_seq_len + 1)):
        if name not in weights or weights[name].ndim != 2 or len(weights[name]) != rows:
            raise FormatError(f"{WEIGHTS} has no {name} with {rows} rows, as the options demand")
    every_position = options.level == 0 and not options.on(PassName.PRUNE)  # has its own dimension
    if every_position and weights["pos_embed.W_pos"].shape[1] < options.max_seq_len:
        raise FormatError(f"{WEIGHTS} has too few dimensions for {options.max_seq_len} positions")


def _check_budget(program: Program, max_parameters: int) -> None:
    """Check that no one-hot encoding needs a table larger than `max_parameters` allows."""
    longest = program.options.max_seq_len
    if program.options.level == 0 and longest**2 > max_parameters:
        raise FormatError(f"it lists {longest:,} positions", hint="raise max_parameters to load it")
    in_bits = many_valued(program)
    for node in program.sops.values():
        listed = isinstance(node.domain, Finite) and node.encoding is Encoding.CATEGORICAL and node.id not in in_bits
        many = node.domain.size if listed else 0
        if many**2 > max_parameters:
            raise FormatError(f"{node.label} lists {many:,} values", hint="raise max_parameters to load it")


def _check_labels(model: CompiledModel, residual: Reader, outputs: Reader) -> None:
    """Check that the labels of dimensions and logits are the saved ones."""
    found = [(output.name, output.start, output.stop) for output in model.outputs]
    given = [(name.text(), start.integer(), stop.integer()) for name, start, stop in _triples(outputs)]
    labels, directions = [place.text() for place in residual.items()], model.residual.dimensions
    wrong = [
        label for label, d in zip(labels, directions, strict=False) if label != d.label and not _unordered(d.value)
    ]
    if given != found or len(labels) != len(directions) or wrong:
        raise FormatError("its labels are not those of its program", hint=OTHER_COMPILER)


def _unordered(value: object) -> bool:
    """Whether a value's text can differ from run to run, as that of a set does."""
    return isinstance(value, frozenset) or (isinstance(value, tuple) and any(map(_unordered, value)))


def _triples(reader: Reader) -> list[tuple[Reader, Reader, Reader]]:
    return [(a, b, c) for a, b, c in (place.items(count=3) for place in reader.items())]


OTHER_COMPILER = "if another version of tracr saved it, load(folder, recompile=True) compiles its program again"


def with_saved_weights(model: DesignedModel, weights: Mapping[str, NDArray[Any]]) -> DesignedModel:
    """The model with the saved weights, which must equal those its program compiles to, within a variant's noise."""
    noise = SIGMAS * model.variant.noise * model.d_model**0.5
    expected = dict(model.parameters.named())
    strange = sorted(set(weights) ^ set(expected))
    if strange:
        raise FormatError(f"{WEIGHTS} lacks or should not have {', '.join(strange[:5])}", hint=OTHER_COMPILER)
    for name, array in expected.items():
        saved = weights[name]
        if saved.shape != array.shape:
            raise FormatError(f"{name} has the shape {saved.shape}, not {array.shape}", hint=OTHER_COMPILER)
        if saved.dtype != np.float64:
            raise FormatError(f"{name} is of type {saved.dtype}, not float64")
        if not np.isfinite(saved).all():
            raise FormatError(f"{name} has weights that are not finite")
        if (np.abs(saved - array) > noise + margin(array)).any():  # machines differ in the last digits of a product
            raise FormatError(f"{name} differs from the weights its program compiles to", hint=OTHER_COMPILER)
    return model._holding(Parameters.of(weights))
