"""Folders that are damaged or hostile, and a process of its own that checks them with little time and memory.

python -m tests.certificate.hostile_folders FOLDER    prints a line of JSON for each; FOLDER holds a saved certificate
"""

from __future__ import annotations

import copy
import faulthandler
import hashlib
import json
import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.hanging import HUNG

SECONDS, BYTES = 20, 3 * 2**30
NAMES = ("model.json", "tables.safetensors", "weights.safetensors")
Files = dict[str, bytes]


def read(folder: Path) -> Files:
    """The four files that the checker reads."""
    return {name: (folder / name).read_bytes() for name in (*NAMES, "certificate.json")}


def with_digests(files: Files) -> Files:
    """The files with a certificate that names their digests, if it can be read and does not."""
    try:
        certificate = json.loads(files["certificate.json"])
        digests = {name: hashlib.sha256(files[name]).hexdigest() for name in NAMES}
        if certificate["sha256"] == digests:
            return files
        certificate["sha256"] = digests
        return {**files, "certificate.json": json.dumps(certificate).encode()}
    except (ValueError, TypeError, KeyError, RecursionError):
        return files


def header(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a safetensors file, and what follows it."""
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def joined(head: Any, body: bytes) -> bytes:
    """A safetensors file."""
    text = json.dumps(head).encode() if not isinstance(head, bytes) else head
    return struct.pack("<Q", len(text)) + text + body


def edited(files: Files, name: str, edit: Callable[[Any], Any]) -> Files:
    """The files with one JSON file edited; `edit` changes it, or gives another."""
    content = json.loads(files[name])
    content = edit(content) or content
    return {**files, name: json.dumps(content).encode()}


def headed(files: Files, name: str, edit: Callable[[dict[str, Any]], Any]) -> Files:
    """The files with the header of a safetensors file edited."""
    head, body = header(files[name])
    edit(head)
    return {**files, name: joined(head, body)}


def filled(files: Files, name: str, number: float) -> Files:
    """The weights with one array full of a number."""
    head, body = header(files["weights.safetensors"])
    start, stop = head[name]["data_offsets"]
    body = body[:start] + struct.pack("<d", number) * ((stop - start) // 8) + body[stop:]
    return {**files, "weights.safetensors": joined(head, body)}


def doubled(key: str, make: Callable[[int, int], dict[str, Any]]) -> Callable[[dict[str, Any]], None]:
    """Add sixty s-ops or selectors that each name the one before twice: 2⁶⁰ paths."""

    def edit(content: dict[str, Any]) -> None:
        nodes = content["program"][key]
        for step in range(60):
            nodes.append(make(10_000 + step, 9_999 + step if step else nodes[0]["id"]))
        if key == "sops":
            content["program"]["outputs"][0][1] = 10_059
        else:
            for sop in content["program"]["sops"]:
                if "selector" in sop["op"]:
                    sop["op"]["selector"] = 10_059

    return edit


def linear(number: int, before: int) -> dict[str, Any]:
    """Twice an s-op, written as a sum."""
    op = {"kind": "linear", "terms": [[before, 1.0], [before, 1.0]], "constant": 0.0}
    domain = {"kind": "finite", "values": [0, 1], "twins": []}
    return {"id": number, "label": f"x{number}", "op": op, "domain": domain, "encoding": "numerical", "wish": None}


def both(number: int, before: int) -> dict[str, Any]:
    """A selector and itself."""
    return {"id": number, "label": f"s{number}", "kind": "and", "parts": [before, before], "counts": [0, 1]}


def pairs_of_pairs(certificate: dict[str, Any]) -> None:
    """Definitions of astronomic size."""
    first = 0
    for step in range(40):
        certificate["aux"][str(100_000 + step)] = {"kind": "pair", "of": [100_000 + step - 1 if step else first] * 2}
    certificate["layers"][0]["mlp"] = dict.fromkeys(certificate["layers"][0]["mlp"], 100_039)


def many_terms(certificate: dict[str, Any]) -> None:
    """A width as the sum of sixty counts: 2⁶⁰ signs."""
    certificate["sums"] = {str(number): [["c0.0"] * 60] for number in range(40)}


def set_at(*path: Any, to: Any) -> Callable[[Any], None]:
    """Set a part of JSON, named by its path."""

    def edit(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = to

    return edit


def removed(key: str) -> Callable[[dict[str, Any]], None]:
    """Delete an entry of a header."""
    return lambda head: head.pop(key) and None


def broken_json(files: Files) -> Iterator[tuple[str, Files]]:
    """Texts that are no JSON, or JSON of the wrong kind."""
    for name in ("model.json", "certificate.json"):
        data = files[name]
        yield f"{name} empty", {**files, name: b""}
        yield f"{name} cut", {**files, name: data[: len(data) // 2]}
        yield f"{name} a list", {**files, name: b"[]"}
        yield f"{name} nested", {**files, name: b"[" * 200_000 + b"]" * 200_000}
        yield f"{name} not UTF-8", {**files, name: b"\xff\xfe" + data}
        yield f"{name} a name twice", {**files, name: data.replace(b"{", b'{"version": 1, "version": 1, ', 1)}
        yield f"{name} NaN", {**files, name: data.replace(b"{", b'{"x": NaN, ', 1)}
        yield f"{name} huge", {**files, name: b'{"a": "' + b"x" * 2**25 + b'"}'}
        yield f"{name} a long number", {**files, name: data.replace(b"{", b'{"x": 1' + b"0" * 10_000 + b", ", 1)}


def without_numbers(files: Files, heads: int) -> Files:
    """The first layer has very many heads of no components, which take no bytes."""
    head, body = header(files["weights.safetensors"])
    kept, data = {}, b""
    for name, entry in head.items():
        if name == "__metadata__":
            continue
        shape, part = entry["shape"], body[slice(*entry["data_offsets"])]
        if name.startswith("blocks.0.attn.") and not name.endswith("b_O"):
            empty = 1 if name.endswith("W_O") else len(shape) - 1
            shape = [heads, *(0 if axis == empty else size for axis, size in list(enumerate(shape))[1:])]
            part = b""
        kept[name] = {**entry, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    return {**files, "weights.safetensors": joined(kept, data)}


def broken_tensors(files: Files) -> Iterator[tuple[str, Files]]:
    """Headers that lie."""
    for name in ("weights.safetensors", "tables.safetensors"):
        data = files[name]
        key = next(key for key in header(data)[0] if key != "__metadata__")
        yield f"{name} empty", {**files, name: b""}
        yield f"{name} cut", {**files, name: data[:-9]}
        yield f"{name} longer", {**files, name: data + b"12345678"}
        yield f"{name} header of 2⁶³ bytes", {**files, name: struct.pack("<Q", 2**63) + data[8:]}
        yield f"{name} huge shape", headed(files, name, set_at(key, "shape", to=[2**31, 2**31]))
        yield f"{name} negative shape", headed(files, name, set_at(key, "shape", to=[-1, -1]))
        yield f"{name} shape of text", headed(files, name, set_at(key, "shape", to=["1"]))
        yield f"{name} overlapping", headed(files, name, set_at(key, "data_offsets", to=[0, 16]))
        yield f"{name} outside", headed(files, name, set_at(key, "data_offsets", to=[2**40, 2**41]))
        yield f"{name} of another type", headed(files, name, set_at(key, "dtype", to="BF16"))
        yield f"{name} an array missing", headed(files, name, removed(key))
    yield (
        "a block of number 10⁹",
        headed(files, NAMES[2], lambda h: h.update({"blocks.1000000000.x.W": h["embed.W_E"]})),
    )
    yield "2³¹ heads without components", without_numbers(files, 2**31)
    yield "a million heads without components", without_numbers(files, 10**6)
    yield "weights of another shape", headed(files, NAMES[2], lambda h: h["embed.W_E"]["shape"].reverse())


def hostile_programs(files: Files) -> Iterator[tuple[str, Files]]:
    """Programs that name what does not exist, themselves, or far too much."""
    for what, edit in {
        "a length of 10⁹": set_at("options", "max_seq_len", to=10**9),
        "lengths up to 10⁹": set_at("program", "lengths", to=[1, 10**9]),
        "lengths backwards": set_at("program", "lengths", to=[3, 1]),
        "no length": set_at("program", "lengths", to=[]),
        "a token for every input": set_at("options", "vocab", to=list(range(10**6))),
        "no token": set_at("options", "vocab", to=[]),
        "an output of no s-op": set_at("program", "outputs", 0, 1, to=777),
        "an output beyond the logits": set_at("outputs", 0, to=["x", 0, 10**9]),
        "an output of no logits": set_at("outputs", 0, to=["x", 3, 1]),
        "no output": set_at("program", "outputs", to=[]),
        "a selector of itself": set_at(
            "program", "selectors", 0, to={"id": 0, "label": "x", "kind": "and", "parts": [0, 0], "counts": []}
        ),
        "a million values": set_at("program", "sops", -1, "domain", "values", to=list(range(10**6))),
        "values of no kind": set_at("program", "sops", -1, "domain", to={"kind": "finite", "values": [[[]]]}),
        "an interval without ends": set_at("program", "sops", -1, "domain", to={"kind": "interval"}),
        "an operation of no kind": set_at("program", "sops", -1, "op", to={"kind": "exec"}),
        "a sum of itself": set_at(
            "program", "sops", -1, "op", to={"kind": "linear", "terms": [[99, 1e308]] * 1000, "constant": 1e308}
        ),
        "2⁶⁰ paths of sums": doubled("sops", linear),
        "2⁶⁰ paths of selectors": doubled("selectors", both),
    }.items():
        yield what, edited(files, "model.json", edit)


def hostile_hints(files: Files) -> Iterator[tuple[str, Files]]:
    """Hints that are wrong, or too many."""
    for what, edit in {
        "no layers": set_at("layers", to=[]),
        "layers of no kind": set_at("layers", to=[{"heads": 3, "mlp": []}]),
        "a million layers": set_at("layers", to=[{"heads": [], "mlp": {}}] * 10**5),
        "owners of no kind": set_at("layers", 0, to={"heads": [{"0": [1]}], "mlp": {"x": {}}}),
        "owners that do not exist": set_at("layers", 0, to={"heads": [{"0": 12345}], "mlp": {"1": "c9.9"}}),
        "a dimension of 10⁹": set_at("layers", 0, to={"heads": [{"1000000000": 0}], "mlp": {"1000000000": 0}}),
        "another version": set_at("version", to=1),
        "another arithmetic": set_at("arithmetic", to="exact"),
        "an arithmetic of no kind": set_at("arithmetic", to=["float32"]),
        "padded is a number": set_at("padded", to=1),
        "a definition of no kind": set_at("aux", to={"100000": {"kind": "oracle", "of": [0]}}),
        "a definition of itself": set_at("aux", to={"100000": {"kind": "pair", "of": [100000, 100000]}}),
        "a definition that hides an s-op": set_at("aux", to={"0": {"kind": "pair", "of": [0, 0]}}),
        "astronomic definitions": pairs_of_pairs,
        "2⁶⁰ signs": many_terms,
    }.items():
        yield what, edited(files, "certificate.json", edit)


def hostile_weights(files: Files) -> Iterator[tuple[str, Files]]:
    """Numbers that are not finite, or not of the format."""
    head, _ = header(files["weights.safetensors"])
    for name in [name for name, entry in head.items() if name != "__metadata__" and 0 not in entry["shape"]][:14]:
        yield f"{name} NaN", filled(files, name, float("nan"))
        yield f"{name} infinite", filled(files, name, float("inf"))
        yield f"{name} 1e300", filled(files, name, 1e300)


def hostile(files: Files) -> Iterator[tuple[str, Files]]:
    """All of them, with digests that fit."""
    for make in (broken_json, broken_tensors, hostile_programs, hostile_hints, hostile_weights):
        for what, changed in make(copy.deepcopy(files)):
            yield what, with_digests(changed)


def peak_memory() -> int:
    """The most bytes this process had in memory. (`getrusage` also counts the process that started it.)"""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024


def main(folder: str) -> None:
    """Check each; the process ends if one takes too long or too much memory."""
    import resource

    import tracr_check

    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    for what, files in hostile(read(Path(folder))):
        print(json.dumps({"what": what}), file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(HUNG // 3, exit=True)
        with tempfile.TemporaryDirectory() as place:
            for name, data in files.items():
                Path(place, name).write_bytes(data)
            start = time.process_time()
            verdict = tracr_check.check_folder(place)
            seconds = time.process_time() - start
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps({"what": what, "accepted": verdict.accepted, "reason": verdict.reason, "seconds": seconds}))
    print(json.dumps({"pid": os.getpid(), "peak": peak_memory()}))


if __name__ == "__main__":
    main(sys.argv[1])
