"""Pages for the browser tests, and what Python says about them: `python web/browser/fixtures.py FOLDER`.

For every program of the library a page, 200 random inputs, numpy's logits and outputs on them, and the reference
interpreter's outputs; some again at level 2 (`NAME-2`), where dimensions are used again, with what every variable holds
after every sub-layer; besides a few pages with odd names, several outputs, long inputs, values in bits.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

import tracr
from tracr import CompiledModel, EvaluationError
from tracr.cli.sources import GivenOptions, find
from tracr.cli.sources import compiled as command_line_model
from tracr.ir.domains import Finite
from tracr.ir.parameters import Parameters
from tracr.model.interventions import locations
from tracr.natural.admission import Admission, Rate
from tracr.natural.architecture import Architecture
from tracr.natural.twin_model import TwinModel
from tracr.rasp import rasp
from tracr.rasp.interpreter import evaluate
from tracr.rasp.programs import EXAMPLES, make_sort
from tracr.values import Value, value_text
from tracr.viz import gallery

INPUTS = 200
REUSING = ("shuffle_dyck", "hist2", "reverse", "sort_freq", "most_freq", "closer")


def main(folder: Path) -> None:
    """Write everything."""
    folder.mkdir(parents=True, exist_ok=True)
    expected = [library(folder, name) for name in EXAMPLES] + [library(folder, name, level=2) for name in REUSING]
    (folder / "library.json").write_text(json.dumps(expected))
    (folder / "turns.json").write_text(json.dumps([turns(name) for name in REUSING]))
    (folder / "patches.json").write_text(json.dumps(patches(folder)))
    others(folder)


def compiled(name: str, level: int = 1) -> CompiledModel:
    """A program of the library."""
    example = EXAMPLES[name]
    return tracr.compile(example.program, example.vocab, example.max_seq_len, level=level)


def page_name(name: str, level: int) -> str:
    """The name of its page."""
    return name if level == 1 else f"{name}-{level}"


def inputs_of(model: CompiledModel, name: str) -> list[list[Value]]:
    """Random inputs, always the same."""
    rng, (shortest, longest) = random.Random(name), model.program.lengths
    return [rng.choices(EXAMPLES[name].vocab, k=rng.randint(shortest, longest)) for _ in range(INPUTS)]


def library(folder: Path, name: str, level: int = 1) -> dict[str, Any]:
    """A program of the library, with its page and what Python computes."""
    example, model, page = EXAMPLES[name], compiled(name, level), page_name(name, level)
    model.explore(name=page, description=example.description).save(folder / f"{page}.html")
    inputs = inputs_of(model, name)
    (output,) = model.outputs
    cases = []
    for tokens in inputs:
        run = model.run(tokens)
        last = f"blocks.{model.n_layers - 1}.hook_resid_post"
        cases.append(
            {
                "text": " ".join(map(value_text, tokens)),
                "codes": [example.vocab.index(token) for token in tokens],
                "logits": run.logits[0].ravel().astype(float).round(7).tolist(),
                "stream": float(np.abs(run[last][0].astype(float)).sum()),
                "model": texts(output.domain, run.decoded),
                "interpreter": interpreted(example.program, tokens, output.domain),
            }
        )
    return {"name": page, "cases": cases}


def turns(name: str) -> dict[str, Any]:
    """What every variable of a level 2 model holds: the interpreter's values while it is there, `None` when it is not.

    A variable some of whose dimensions are cleared is left out from then on ("?").
    """
    model = compiled(name, level=2)
    assert len(model.residual.dimensions) > len(model.residual)
    cases = []
    for tokens in inputs_of(model, name)[:20]:
        values = values_of(model, tokens)
        held: dict[str, list[list[str | None] | str]] = {}
        for label, location in locations(model.program, model.layout).items():
            mine = [one for one in model.layout.directions if one.variable is location.variable]
            node = next(node for node in model.program.sops.values() if node.label == label)
            shown = texts(node.domain, values[label])
            held[label] = []
            for time in range(-1, 2 * model.n_layers):
                there = sum(one.held(time) for one in mine)
                held[label].append(shown if there == len(mine) else "?" if there else [None] * len(tokens))
        cases.append({"codes": [model.options.vocab.index(token) for token in tokens], "held": held})
    return {"name": page_name(name, 2), "cases": cases}


def interpreted(program: rasp.SOp, tokens: list[Value], domain: Any) -> list[str] | None:
    """What the reference interpreter gives; `None` where the program has no value."""
    try:
        return texts(domain, evaluate(program, tokens))
    except EvaluationError:
        return None


def texts(domain: Any, values: list[Value]) -> list[str]:
    """Values as the page shows them: those of the domain they are equal to, or nearest to."""
    if not isinstance(domain, Finite):
        return [repr(value) for value in values]

    def code(value: Any) -> int:
        """An exact mean may differ from the listed one in the last digit."""
        found = domain.index.get(value)
        return int(np.abs(domain.numbers - float(value)).argmin()) if found is None else found

    return [value_text(domain.values[code(value)]) for value in values]


def patches(folder: Path) -> list[dict[str, Any]]:
    """Interventions, with what numpy makes of them."""
    wanted: list[tuple[str, int, list[Value], str, int, Value]] = [
        ("frac_prevs", 1, list("xaax"), "is_x", 2, True),
        ("sort", 1, [3, 1, 4, 1], "target_pos", 2, 4),
        ("dyck1", 1, list("()(a"), "bools_close", 0, True),
        ("induction", 1, list("abcab"), "tokens", 3, "c"),
        ("shuffle_dyck", 2, list("(a)a"), "all_zero", 3, False),
        ("reverse", 2, list("abca"), "tokens", 1, "c"),
        ("sort_freq", 2, list("abbc"), "hist", 0, 3),
        ("hist2", 2, list("abbc"), "hist", 0, 3),
    ]
    found = []
    for name, level, tokens, variable, position, value in wanted:
        model = compiled(name, level)
        node = next(node for node in model.program.sops.values() if node.label == variable)
        assert isinstance(node.domain, Finite)
        held = values_of(model, tokens)[variable]
        held[position] = value
        (output,) = model.outputs
        found.append(
            {
                "name": page_name(name, level),
                "text": " ".join(map(value_text, tokens)),
                "variable": variable,
                "position": position,
                "value": value_text(node.domain.values[node.domain.index[value]]),
                "before": texts(output.domain, model(tokens)),
                "after": texts(output.domain, model.run(tokens, set={variable: held}).decoded),
            }
        )
    return found


def values_of(model: CompiledModel, tokens: list[Value]) -> dict[str, list[Value]]:
    """The interpreter's values of every variable."""
    from tracr.model.stream import variable_values

    return {label: list(values) for label, values in variable_values(model, tokens).items()}


def others(folder: Path) -> None:
    """Pages that are unusual in some way."""
    odd = "<img src=x onerror=alert(1)>"
    tokens = ("</script>", odd, "&amp;", "é ☃")
    named = rasp.Map(lambda x: x == odd, rasp.tokens).named(odd)
    tracr.compile({odd: named}, tokens, 3).explore(name=odd, description="</script><b>").save(folder / "odd.html")
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ).named("same")
    several = {"count": rasp.SelectorWidth(same), "place": rasp.Aggregate(same, rasp.indices)}
    tracr.compile(several, range(40), 30, causal=True).explore(name="several").save(folder / "several.html")
    size = 12  # 204 dimensions
    large = make_sort(rasp.tokens, rasp.tokens, max_seq_len=size, min_key=1)
    tracr.compile(large, range(1, size + 1), size).explore(name="large").save(folder / "large.html")
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT).named("before")
    is_a = rasp.Select(rasp.tokens, rasp.indices, lambda k, q: k == "a").named("is_a")
    composite = rasp.Aggregate((same & before) | is_a, rasp.indices).named("mean")
    tracr.compile(composite, "abc", 6).explore("abcb", name="composite").save(folder / "composite.html")
    tracr.compile(rasp.tokens, "ab", 3).explore(name="nothing").save(folder / "nothing.html")
    example, passes = EXAMPLES["reverse"], {"fold": True, "reuse": True}
    model = tracr.compile(example.program, example.vocab, example.max_seq_len, passes=passes)
    model.explore(name="reusing").save(folder / "reusing.html")
    kind = rasp.Map(lambda n: n % 7, rasp.tokens).named("kind")
    tracr.compile(kind, range(1200), 4).explore([7, 1199, 0], name="bits").save(folder / "bits.html")
    fails = rasp.Map(lambda n: 1 / (n - 2), rasp.SelectorWidth(same)).named("fails")
    tracr.compile(fails, "ab", 4).explore("aab", name="fails").save(folder / "fails.html")
    frame = tracr.compile(EXAMPLES["hist"].program, "abc", 5).explore("abca")._repr_html_()
    (folder / "notebook.html").write_text(f"<!doctype html><title>notebook</title>{frame}", encoding="utf-8")
    host(folder)
    textual(folder)
    galleries(folder)


def random_twin(teacher: CompiledModel) -> TwinModel:
    """A twin that was not trained: random weights."""
    rng, architecture = np.random.default_rng(0), Architecture(teacher.n_layers, width=32)
    shapes = architecture.shapes(teacher)
    weights = {name: rng.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}
    return TwinModel(teacher, architecture, Parameters.of(weights), Admission(Rate(0, 100), False, ()), 0, 0)


def galleries(folder: Path) -> None:
    """Levels, original and patched, compiled and twin."""
    levels = [compiled("hist", level) for level in (0, 1, 2)]
    gallery(*levels, title="hist at three levels").save(folder / "gallery.html")
    model = compiled("frac_prevs")
    patched = model.explore("xac", set={"is_x": [True, True, False]}, name="frac_prevs, patched")
    gallery(model.explore("xac", name="frac_prevs"), patched).save(folder / "gallery-patched.html")
    twin = random_twin(levels[1])
    gallery(twin.teacher, twin, tokens="abca").save(folder / "gallery-twin.html")
    run = twin.run(list("abcab"))
    pattern = run["blocks.0.attn.hook_pattern"][0, 0].ravel().astype(float).tolist()
    (output,) = twin.teacher.outputs
    expected = {"input": "a b c a b", "outputs": texts(output.domain, run.decoded), "pattern": pattern}
    (folder / "twin.json").write_text(json.dumps(expected))


def textual(folder: Path) -> None:
    """The .rasp programs of the examples, as the command writes their pages; some again at level 2."""
    for path in sorted((Path(__file__).parents[2] / "examples" / "rasp").glob("*.rasp")):
        for level in (1, 2):
            options = GivenOptions(level=level)
            found = find(str(path), None, options)
            model = command_line_model(found, options)
            model.explore(list(found.shown), name=found.name).save(folder / f"rasp-{path.stem}-{level}.html")


def host(folder: Path) -> None:
    """A page of someone else, with room for two explorers; its script mounts none."""
    script = resources.files("tracr.viz.explorer").joinpath("explorer.js").read_text(encoding="utf-8")
    data = {name: compiled(name).explore().data for name in ("frac_prevs", "hist")}
    given = json.dumps(data).replace("<", "\\u003c")
    body = f"<h1>Host</h1><div id=a></div><div id=b></div><script type=application/json id=given>{given}</script>"
    page = f"<!doctype html><html lang=en><title>host</title>{body}<script>{script}</script></html>"
    (folder / "host.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore", tracr.TracrWarning)  # one of the programs fails on purpose
    main(Path(sys.argv[1]))
