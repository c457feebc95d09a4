"""Trains twins of many programs of the zoo: how many seeds are admitted, how long it takes, which ones fail and why.

    python benchmarks/twins.py -o results/ [--programs hist,hist2:0+3] [--seeds 4] [--jobs 4] [--seconds 540]
    python benchmarks/twins.py -o results/ --missing [--jobs 6] [--each-seconds 1400]
    python benchmarks/twins.py -o results/ --finish --programs bigram_count:2+3 --steps 2000 --batch 128
    python benchmarks/twins.py -o results/ --score          # edge patching of the admitted twins that have none
    python benchmarks/twins.py -o docs/natural/twins --norms hist   # how much spare components of saved twins write
    python benchmarks/twins.py -o results/ --fold           # put the rows into docs/natural/results.json
    python benchmarks/twins.py -o docs/natural --table      # the table of the page, from results.json
    python benchmarks/twins.py -o docs/natural --compare    # the programs that were trained again

The twins of one program train together; with `--jobs` several programs train at the same time, each in a process of its
own. A finished program is skipped, a stopped one continues from its checkpoint. Twins are saved when they are admitted;
`results.json` holds a row for each program and seed. `--missing` names the programs of docs/natural/results.json with
fewer than three admitted seeds; some need more steps (`LONGER`). With `--score`, also on another machine, the rows of
admitted twins get the AUROC of exact edge patching, edges needed alone against inert ones
(`tracr.natural.edge_auroc`). Meant for a GPU; small programs also train on a CPU. `--finish` trains seeds that are not
admitted further (`tracr.natural.finish`), also on another machine, from the state of their training; their rows then
have the steps of both trainings, and what is of the second one alone under names with `finish`.

On one H200, compiling takes longer than training: ten jobs at a time, the programs sharing a compilation cache
(JAX_COMPILATION_CACHE_DIR), without Triton's products (XLA_FLAGS=--xla_gpu_enable_triton_gemm=false), and under
NVIDIA's multi-process service, so that the small kernels of different programs run side by side.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tracr
from tracr import natural, zoo
from tracr.ir.parameters import Parameters
from tracr.natural.admission import Admission, Rate
from tracr.natural.architecture import architecture_of
from tracr.natural.cases import case_of
from tracr.natural.saving import load

if TYPE_CHECKING:
    from tracr.natural.edge_patching import EdgeSeparation

LIBRARY = zoo.names("library")
OTHERS = [
    "copy_next",
    "copy_two_back",
    "copy_first",
    "stutter",
    "swap_pairs",
    "follow_pointer",
    "follow_two_pointers",
    "induction_head",
    "indirect_object",
    "skip_bigram",
    "bigram_count",
    "hist_so_far",
    "count_after",
    "distinct_so_far",
    "is_unique",
    "is_last_occurrence",
    "first_duplicate",
    "add_mod",
    "mean_so_far",
    "centred",
    "moving_average",
    "difference",
    "vowel_fraction",
    "sentiment",
    "count_larger",
    "smaller_so_far",
    "greater_than_first",
    "sorted_so_far",
    "is_peak",
    "run_number",
    "run_length",
    "inside_quotes",
    "depth",
    "caesar",
    "rock_paper_scissors",
    "mask_repeats",
    "rule_110",
    "gray_code",
    "copy_last",
    "rotate_left",
    "is_doubled",
    "partner_distance",
    "deepest_letter",
    "token_of_longest_run",
]

STEPS = 22_000
LONGER = {"hist2": 30_000, "induction": 24_000, "hist_bos": 24_000, "sort_composite": 30_000, "bigram_count": 30_000}
DEEP = {"is_doubled", "partner_distance", "shuffle_dyck2", "deepest_letter", "token_of_longest_run"}  # 6 or 8 layers
HARD = {"hist2", "sort_freq", "most_freq", "bigram_count"} | DEEP  # stronger hints and quiet spare components
KEPT = Path(__file__).parents[1] / "docs" / "natural" / "results.json"

EARLIER = {name: KEPT.with_name(f"results_{name.replace(' ', '_')}.json") for name in ("without hints", "with hints")}


def main() -> None:
    """Train the missing programs and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder for results, twins and checkpoints")
    parser.add_argument(
        "--programs", default=",".join([*LIBRARY, *OTHERS]), help="names, separated by commas; hist:0+3 for these seeds"
    )
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--finish", action="store_true", help="train the seeds further that are not admitted")
    parser.add_argument("--missing", action="store_true", help="the programs with too few admitted seeds")
    parser.add_argument("--steps", type=int, help=f"by default {STEPS:,}, more for some programs")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--jobs", type=int, default=1, help="how many programs train at the same time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no program after this time")
    parser.add_argument("--each-seconds", type=float, help="train a program no longer than this")
    parser.add_argument("--until", type=float, help="train no longer than this moment, in seconds since 1970")
    parser.add_argument("--score", action="store_true", help="only patch the edges of saved twins without a score")
    parser.add_argument("--pairs", type=int, default=512, help="pairs of inputs for each score")
    parser.add_argument("--norms", nargs="+", help="only print the norms that components of these saved twins write")
    parser.add_argument("--fold", action="store_true", help=f"only put the rows into {KEPT.name} of the page")
    parser.add_argument("--table", action="store_true", help="only print the table of the results in the folder")
    parser.add_argument("--compare", action="store_true", help="only compare with the results of earlier trainings")
    given = parser.parse_args()
    if given.compare:
        print(compared(json.loads((given.out / "results.json").read_text())))
        return
    if given.table:
        print(table(json.loads((given.out / "results.json").read_text())))
        return
    if given.norms:
        for name in given.norms:
            print(name, norms(load(given.out / name)))
        return
    if given.fold:
        new = json.loads((given.out / "results.json").read_text())
        write(KEPT, folded(json.loads(KEPT.read_text()), new))
        return
    (given.out / "rows").mkdir(parents=True, exist_ok=True)
    if given.finish:
        for chosen in given.programs.split(","):
            finish(chosen.partition(":")[0], seeds_of(chosen, given), given)
    elif given.score:
        for file in sorted((given.out / "rows").glob("*.json")):
            write(file, scored(given.out, json.loads(file.read_text()), given.pairs))
    else:
        train_all(given)
    known = [*LIBRARY, *OTHERS]
    files = sorted((given.out / "rows").glob("*.json"), key=lambda file: known.index(file.stem))
    write(given.out / "results.json", [row for file in files for row in json.loads(file.read_text())])


def train_all(given: argparse.Namespace) -> None:
    """Train the programs that have no rows yet."""
    began = time.time()

    def one(chosen: str) -> None:
        name, seeds = chosen.partition(":")[0], seeds_of(chosen, given)
        if finished(row_file(given.out, name), len(seeds)) or time.time() - began > given.seconds:
            return
        if given.until is not None and time.time() > given.until:
            return
        if given.jobs == 1:
            write(row_file(given.out, name), train(name, seeds, given))
        else:
            options = {
                "seeds": given.seeds,
                "steps": given.steps,
                "batch": given.batch,
                "each-seconds": given.each_seconds,
                "until": given.until,
            }
            settings = [f"--{option}={value}" for option, value in options.items() if value is not None]
            subprocess.run([sys.executable, __file__, "-o", given.out, "--programs", chosen, *settings], check=False)

    names = too_few(json.loads(KEPT.read_text())) if given.missing else given.programs.split(",")
    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(one, names))


def aids(name: str) -> dict[str, Any]:
    """The weights of hints and of spare components."""
    return {"hint": 5.0, "spare": 1.0} if name in HARD else {"hint": 1.0, "spare": 0.0}


def seeds_of(chosen: str, given: argparse.Namespace) -> list[int]:
    """The seeds of a program: those after its name, or else the first ones."""
    named = chosen.partition(":")[2]
    return [int(seed) for seed in named.split("+")] if named else list(range(given.seeds))


def too_few(rows: list[dict[str, Any]]) -> list[str]:
    """The programs with fewer than three admitted seeds, then those of the library that were not trained."""
    admitted = Counter(row["program"] for row in rows if row["admitted"])
    trained = dict.fromkeys(row["program"] for row in rows)
    return [name for name in trained if admitted[name] < 3] + [name for name in LIBRARY if name not in trained]


def folded(rows: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, with those of the programs of `new` replaced."""
    again = {row["program"] for row in new}
    names = [*LIBRARY, *OTHERS]
    kept = [row for row in rows if row["program"] not in again]
    return sorted([*kept, *new], key=lambda row: (names.index(row["program"]), row["seed"]))


def finished(file: Path, seeds: int) -> bool:
    """Whether all rows of a program are there, and its training was not stopped by a limit of time."""
    rows = json.loads(file.read_text()) if file.exists() else []
    return len(rows) >= seeds and all(row["admitted"] or row["steps"] >= row["most_steps"] for row in rows)


def row_file(out: Path, name: str) -> Path:
    """Where the rows of a program are kept."""
    return out / "rows" / f"{name}.json"


def write(table: Path, rows: list[dict[str, Any]]) -> None:
    """Replace a table."""
    aside = table.with_suffix(".tmp")
    aside.write_text(json.dumps(rows, indent=1) + "\n")
    aside.replace(table)


def train(name: str, seeds: list[int], given: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of one program."""
    import jax

    model, steps = case_of(name).load(), given.steps or LONGER.get(name, STEPS)
    began = time.time()

    about = (name, model, given, steps, jax.devices()[0].device_kind)

    def show(progress: natural.Progress) -> None:
        worst = " ".join(f"{one:.3f}" for one in progress.worst)
        print(f"{name} {progress.done:6d} {time.time() - began:5.0f} s  worst {worst}  {progress.admitted}", flush=True)
        for twin in progress.twins:
            if not (folder := given.out / f"{name}-{twin.seed}").exists():
                twin.save(folder)
        seconds = time.time() - began
        rows = rows_of(*about, progress.twins, seconds) + unfinished(columns(*about, seconds), progress, seeds)
        write(row_file(given.out, name), sorted(rows, key=lambda row: row["seed"]))

    made = natural.twins(
        model,
        seeds,
        steps=steps,
        batch=given.batch,
        **aids(name),
        checkpoint=given.out / f"{name}.training",
        seconds=limit(given),
        progress=show,
    )
    for twin in made:
        twin.save(given.out / f"{name}-{twin.seed}")
        print(twin, f"{time.time() - began:.0f} s", flush=True)
    return rows_of(*about, made, time.time() - began)


def finish(name: str, seeds: list[int], given: argparse.Namespace) -> None:
    """Train seeds of one program further, from the state of their training, and write their new rows."""
    import jax

    from tracr.natural.checkpoint import Checkpoint

    file, began, used = row_file(given.out, name), time.time(), time.process_time()
    rows = {row["seed"]: row for row in json.loads(file.read_text())}
    model = case_of(name).load()
    architecture = architecture_of(model, 64, 16, 128, layer_norm=True, activation="gelu")
    means, done = Checkpoint.means(given.out / f"{name}.training", architecture.shapes(model))
    nothing = Admission(Rate(0, 0), every_input=False, sites=())
    unmeasured = [
        natural.TwinModel(
            model,
            architecture,
            Parameters.of({key: array[list(rows).index(seed)] for key, array in means.items()}),
            nothing,
            seed,
            done,
        )
        for seed in seeds
    ]

    def show(progress: natural.Progress) -> None:
        worst = " ".join(f"{one:.4f}" for one in progress.worst)
        spent = f"{time.time() - began:5.0f} s, processor {time.process_time() - used:5.0f} s"
        print(f"{name} {done} + {progress.done} {spent}  worst {worst}  {progress.admitted}", flush=True)

    steps = given.steps or 4_000
    made = natural.finish(unmeasured, steps=steps, batch=given.batch, seconds=limit(given), progress=show)
    device = jax.devices()[0].device_kind
    settings = argparse.Namespace(batch=rows[seeds[0]]["batch"])
    new = rows_of(name, model, settings, done + steps, rows[seeds[0]]["device"], made, time.time() - began)
    for twin, row in zip(made, new, strict=True):
        print(twin, flush=True)
        if twin.admitted:
            twin.save(given.out / f"{name}-{twin.seed}", overwrite=True)
        row["seconds"] = rows[twin.seed]["seconds"]
        row["finish device"] = device
        row["finish steps"] = twin.steps - done
        row["finish batch"] = given.batch
        row["finish seconds"] = round(time.time() - began, 1)
        row["finish processor"] = round(time.process_time() - used, 1)
        rows[twin.seed] = row
    write(file, list(rows.values()))


def limit(given: argparse.Namespace) -> float | None:
    """The seconds that a program may train, if they are limited."""
    left = [given.each_seconds, None if given.until is None else max(1.0, given.until - time.time())]
    return min((one for one in left if one is not None), default=None)


def rows_of(
    name: str,
    model: tracr.CompiledModel,
    given: argparse.Namespace,
    steps: int,
    device: str,
    made: Sequence[natural.TwinModel],
    seconds: float,
) -> list[dict[str, Any]]:
    """A row for each twin."""
    shared = columns(name, model, given, steps, device, seconds)
    return [
        {
            **shared,
            "seed": twin.seed,
            "admitted": twin.admitted,
            "steps": twin.steps,
            "accuracy": twin.admission.accuracy.share,
            "missed": [str(site) for site in twin.admission.missed[:10]],
            "missed_sites": len(twin.admission.missed),
        }
        for twin in made
    ]


def columns(
    name: str, model: tracr.CompiledModel, given: argparse.Namespace, steps: int, device: str, seconds: float
) -> dict[str, Any]:
    """The columns that all seeds of a program share."""
    architecture = architecture_of(model, 64, 16, 128, layer_norm=True, activation="gelu")
    return {
        "program": name,
        "tokens": len(model.options.vocab),
        "length": model.options.max_seq_len,
        "causal": model.options.causal,
        "layers": model.n_layers,
        "sites": len(architecture.sites.all),
        "most_steps": steps,
        "batch": given.batch,
        **aids(name),
        "seconds": round(seconds, 1),
        "device": device,
    }


def unfinished(shared: dict[str, Any], progress: natural.Progress, seeds: list[int]) -> list[dict[str, Any]]:
    """Rows of the seeds that are not admitted yet, in case that training is killed."""
    return [
        {**shared, "seed": seed, "admitted": False, "steps": progress.done, "worst": worst}
        for place, (seed, worst) in enumerate(zip(seeds, progress.worst, strict=True))
        if place not in progress.admitted
    ]


def scored(out: Path, rows: list[dict[str, Any]], pairs: int) -> list[dict[str, Any]]:
    """The rows of one program, with edge patching of its admitted twins."""
    wanted = [row for row in rows if row["admitted"] and "auroc" not in row]
    twins = [load(out / f"{row['program']}-{row['seed']}") for row in wanted]
    twins = [replace(twin, teacher=twins[0].teacher) for twin in twins]  # the same model: its part is computed once
    for row, found in zip(wanted, natural.edge_aurocs(twins, pairs=pairs), strict=True):
        row.update(separated(found))
    for row in rows:
        if row["admitted"] and "norms" not in row:
            row["norms"] = norms(load(out / f"{row['program']}-{row['seed']}"))
    return rows


def norms(twin: natural.TwinModel) -> dict[str, list[float]]:
    """The lowest and highest mean norm that components write at tokens: those of the teacher, and spare ones."""
    import jax.numpy as jnp

    from tracr.natural.network import Patch, network_of
    from tracr.natural.teacher import inputs_of

    network, inputs = network_of(twin.teacher, twin.architecture), inputs_of(twin.teacher, None)
    ids = jnp.asarray(inputs.ids[:: max(1, len(inputs) // 200)])
    weights = {name: jnp.asarray(array) for name, array in twin.parameters.named()}
    nobody = jnp.zeros(len(ids), dtype=int)
    patch = Patch(nobody, nobody, jnp.zeros(ids.shape, dtype=bool), nobody.astype(bool))
    written: dict[str, Any] = {}
    network.patched(weights, ids, patch, jnp.zeros((*ids.shape, twin.architecture.width)), written)
    token = network.tokens(ids)
    mean = {name: float(jnp.linalg.norm(output, axis=-1)[token].mean()) for name, output in written.items()}
    known = {node.id for node in twin.teacher.ground_truth.nodes("qkv")}
    kinds = {"teacher's": [mean[name] for name in mean if name in known]}
    kinds["spare"] = [mean[name] for name in mean if name not in known]
    return {kind: [round(min(several), 3), round(max(several), 3)] for kind, several in kinds.items() if several}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table, one line a program."""
    head = ("program", "tokens, length", "layers", "nodes and edges", "batch", "admitted", "after steps", "seconds")
    lines = [head, ["---"] * len(head)]
    for name in dict.fromkeys(row["program"] for row in rows):
        seeds = [row for row in rows if row["program"] == name]
        first, steps = seeds[0], sorted({row["steps"] for row in seeds if row["admitted"]})
        after = " to ".join(f"{step:,}" for step in dict.fromkeys([*steps[:1], *steps[-1:]]))
        missed = " ".join(str(row["seed"]) for row in seeds if not row["admitted"])
        if missed:
            last = max(row["steps"] for row in seeds if not row["admitted"])
            after += f"{'; ' * bool(after)}{missed} not after {last:,}"
        cells = [f"{name}{', causal' * first['causal']}", f"{first['tokens']}, {first['length']}", first["layers"]]
        cells += [first["sites"], first["batch"], f"{len(seeds) - len(missed.split())} of {len(seeds)}", after]
        lines.append([*map(str, cells), f"{first['seconds']:.0f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def compared(rows: list[dict[str, Any]]) -> str:
    """The programs that were trained again: how many twins each training admitted, in at most how many steps."""
    trainings = {name: json.loads(file.read_text()) for name, file in EARLIER.items()} | {"now": rows}
    again = {row["program"] for row in trainings["with hints"]}
    lines: list[Sequence[str]] = [("program", *trainings), ("---",) * (1 + len(trainings))]
    for name in dict.fromkeys(row["program"] for row in trainings["without hints"]):
        cells = [name]
        for training, several in trainings.items():
            if training == "with hints" and name not in again:
                several = rows
            seeds = [row for row in several if row["program"] == name]
            trained = training != "now" or name in again
            admitted = sum(row["admitted"] for row in seeds)
            cells.append(f"{admitted} of {len(seeds)}, {seeds[0]['most_steps']:,}" if trained else "")
        lines.append(cells)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def separated(found: EdgeSeparation) -> dict[str, Any]:
    """The columns of a row on exact edge patching: shares of pairs in which the twin's answer changes."""
    return {
        "auroc": found.auroc,
        "pairs": found.pairs,
        "needed": len(found.needed),
        "inert": len(found.inert),
        "undecided": len(found.undecided),
        "lowest_needed": min(found.needed.values(), default=None),
        "highest_inert": max(found.inert.values(), default=None),
    }


if __name__ == "__main__":
    main()
