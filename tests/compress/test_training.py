"""Training projections, with JAX: the objective, the paper's recipe, the fast one, and sweeps."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.agreement import compile_quietly
from tracr.compress import FastRecipe, Recipe, all_inputs, sweep
from tracr.compress.paper import study
from tracr.compress.projection import SHARING, Projection, fold, sites_of
from tracr.compress.task import task_of
from tracr.rasp import programs
from tracr.runtime.forward import forward

jax = pytest.importorskip("jax")
pytest.importorskip("optax")

from tracr.compress.fast import fast  # noqa: E402
from tracr.compress.objective import Objective  # noqa: E402
from tracr.compress.rounds import RUNS  # noqa: E402
from tracr.compress.sgd import starts, train  # noqa: E402

pytestmark = pytest.mark.slow
SHORT = Recipe(steps=60, chunk=20, batch=32)
QUICK = FastRecipe(starts=4, steps=100, polish=10, kept=1, shrink=10, needed=1, rounds=1)


@pytest.mark.parametrize("name", ["frac_prevs", "sort_unique", "hist", "hist2"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_objective_is_the_folded_model(name: str, causal: bool) -> None:
    """The form without a residual stream computes what the d-dimensional transformer does, at every length."""
    example = programs.EXAMPLES[name]
    model = compile_quietly(example.program, example.vocab[:3], 3, causal=causal, level=0)
    task = task_of(model)
    for sharing in SHARING:
        sites = sites_of(task.network, sharing)
        objective = Objective(task, sites)
        params = {key: value[0] for key, value in starts(objective, 6, [5], None, False).items()}
        _, logits = objective.forward(params)
        folded = fold(model.parameters, task.network, Projection(np.asarray(params["W"], dtype=float), sites))
        for length in (1, 2, 3):
            rows = np.flatnonzero(task.real.sum(axis=1) == length + 1)
            wanted = forward(folded, task.ids[rows, : length + 1], np, causal=causal)
            assert np.allclose(np.asarray(logits)[rows, : length + 1], wanted, atol=2e-3 * max(1, np.abs(wanted).max()))


def test_the_identity_has_no_loss() -> None:
    """With d = D and W = 1 the sub-layers write what they did, and the loss is the compiled model's."""
    for name, floor in (("frac_prevs", 0.0), ("sort_unique", None)):
        model, inputs = study(name)
        task = task_of(model, inputs)
        objective = Objective(task, sites_of(task.network, "one"))
        losses = objective.losses({"W": np.eye(model.d_model, dtype=np.float32)[None]})
        assert np.allclose(losses.layers, 0, atol=1e-9)
        assert float(losses.output) == pytest.approx(np.log(np.exp(1) + 4) - 1 if floor is None else floor, abs=1e-3)


def test_sgd_is_reproducible_and_alone_as_among_others() -> None:
    """The same seed gives the same model, whichever runs it is trained with; the loss falls."""
    model, inputs = study("frac_prevs")
    first, second = (tracr.compress(model, 6, "sgd", 3, inputs=inputs, recipe=SHORT) for _ in range(2))
    assert np.array_equal(first.W, second.W)
    assert len(first.training.curve) == 3
    assert first.training.curve[-1] < first.training.curve[0]
    task = task_of(model, inputs)
    objective = Objective(task, sites_of(task.network, "one"))
    several = train(objective, starts(objective, 6, [1, 3], None, False), SHORT)
    assert np.allclose(several.run(1)["W"][0], first.W, atol=1e-4)
    assert several.losses.shape == (2,)


def test_columns_of_zeros_stay_zeros() -> None:
    """A run of few dimensions is one of many with columns of zeros: that is how a sweep trains all dims at once."""
    model, inputs = study("frac_prevs")
    task = task_of(model, inputs)
    objective = Objective(task, sites_of(task.network, "one"))
    narrow = starts(objective, 4, [0], None, False)
    wide = {"W": np.pad(np.asarray(narrow["W"]), [(0, 0), (0, 0), (0, 0), (0, 5)])}
    few, many = (train(objective, {"W": jax.numpy.asarray(params["W"])}, SHORT) for params in (narrow, wide))
    assert np.allclose(many.params["W"][..., 4:], 0)
    assert np.allclose(many.params["W"][..., :4], few.params["W"], atol=1e-4)


def test_fast_is_reproducible_and_good() -> None:
    """Few starts at 5 dimensions, fewer than sub-layers need to read exactly, get close; twice the same."""
    model, inputs = study("frac_prevs")
    some = inputs[::8]
    recipe = FastRecipe(starts=8, steps=500, polish=40, shrink=20, needed=2, rounds=0)
    first, second = (tracr.compress(model, 5, "fast", 1, inputs=some, recipe=recipe) for _ in range(2))
    assert np.array_equal(first.W, second.W)
    assert first.training.loss < 2e-2
    assert first.training.loss <= min(first.training.starts) * (1 + 1e-6)
    assert len(first.training.starts) == recipe.needed + recipe.starts + recipe.kept


@pytest.mark.parametrize("options", [{}, {"sharing": "read-write"}])
def test_fast_loses_nothing_where_sub_layers_can_read_exactly(options: dict[str, Any]) -> None:
    """In 12 dimensions sort_unique works as programmed, where the paper's recipe ends at a loss of 0.61."""
    model, inputs = study("sort_unique")
    recipe = FastRecipe(starts=2, steps=5, polish=40)
    small = tracr.compress(model, 12, "fast", inputs=inputs, recipe=recipe, **options)
    assert small.training.loss < 1e-8
    assert min(small.report(inputs).cosine.values()) > 0.999


def test_fast_starts_from_needed_reads_where_exact_ones_do_not_fit() -> None:
    """sort_unique in 7 dimensions, where exact reads need 9, before other starts are tried."""
    task = task_of(*study("sort_unique"))
    objective = Objective(task, sites_of(task.network, "one"))
    stages: list[str] = []
    recipe = FastRecipe(enough=1e-3)
    found = fast(objective, 7, 0, recipe, 256.0, progress=lambda stage, done, loss: stages.append(stage))
    assert found.losses[0] < 1e-3
    assert set(stages) <= {"needed", "polish"}


def test_rounds_replace_random_starts_where_they_are_cheap() -> None:
    """sort_unique in 4 dimensions on 24 inputs: needed reads, then rounds, which end lower; twice the same."""
    task = task_of(*study("sort_unique"))
    objective = Objective(task, sites_of(task.network, "one"))
    stages: list[str] = []
    recipe = FastRecipe(needed=2, rounds=3, polish=30)
    first, second = (
        fast(objective, 4, 0, recipe, 256.0, progress=lambda stage, done, loss: stages.append(stage)) for _ in range(2)
    )
    assert set(stages) == {"needed", "polish", "rounds"}
    assert np.array_equal(first.params["W"], second.params["W"])
    assert first.started.shape == (recipe.needed + recipe.rounds * RUNS,)
    assert first.losses[0] < first.started[: recipe.needed].min()


def test_surplus_columns_are_pulled_to_zero() -> None:
    """From the 8 columns with which sub-layers of frac_prevs read exactly to 7, before other starts are tried."""
    model, inputs = study("frac_prevs")
    task = task_of(model, inputs[::8])
    objective = Objective(task, sites_of(task.network, "one"))
    stages: list[str] = []
    recipe = FastRecipe(starts=2, steps=5, polish=40, shrink=100, needed=0)
    found = fast(objective, 7, 0, recipe, model.options.gap, progress=lambda stage, done, loss: stages.append(stage))
    assert found.params["W"].shape == (recipe.kept, 1, 14, 7)
    assert found.losses[0] < 1e-6
    assert set(stages) == {"exact", "shrink"}


@pytest.mark.parametrize("method", ["sgd", "fast"])
@pytest.mark.parametrize("options", [{"sharing": "layer"}, {"sharing": "read-write"}, {"train_weights": True}])
def test_the_options_the_paper_names(method: str, options: dict[str, Any], tmp_path: Path) -> None:
    """A projection per layer, separate reads and writes, other weights too: trained, saved, loaded."""
    model, inputs = study("sort_unique")
    recipe = SHORT if method == "sgd" else QUICK
    small = tracr.compress(model, 10, method, inputs=inputs, recipe=recipe, **options)
    assert np.isfinite(small.training.loss)
    small.save(tmp_path / "small")
    back = tracr.load(tmp_path / "small")
    assert back([2, 4, 1]) == small([2, 4, 1])
    assert isinstance(back, tracr.CompressedModel)
    assert back.report(inputs).accuracy == small.report(inputs).accuracy


def test_weights_of_the_loss() -> None:
    """Without layer loss only the output counts, and it gets better than with."""
    model, inputs = study("frac_prevs")
    both, output = (
        tracr.compress(model, 5, "sgd", inputs=inputs, recipe=Recipe(steps=400, chunk=200), layer_weight=weight)
        for weight in (1.0, 0.0)
    )
    assert output.training.loss == pytest.approx(output.training.output_loss)
    assert both.training.loss == pytest.approx(both.training.output_loss + both.training.layer_loss)


def test_a_diverging_run_is_an_error() -> None:
    """An absurd learning rate gives no numbers, and a message."""
    model, inputs = study("frac_prevs")
    with pytest.raises(tracr.TracrError, match="diverged"):
        tracr.compress(model, 6, "sgd", inputs=inputs, recipe=Recipe(steps=60, chunk=20, learning_rate=1e30))


def test_interrupting_keeps_the_best_so_far() -> None:
    """Ctrl-C in the middle of either method gives a model all the same."""
    model, inputs = study("frac_prevs")

    def stop(stage: str, done: int, loss: float) -> None:
        raise KeyboardInterrupt

    for method, dim, recipe in (("sgd", 6, SHORT), ("fast", 6, QUICK), ("fast", 9, QUICK)):
        small = tracr.compress(model, dim, method, inputs=inputs, recipe=recipe, progress=stop)
        assert small.training.interrupted
        assert np.isfinite(small.training.loss)


def test_a_model_of_a_smaller_gap() -> None:
    """The gap is the compiled model's own."""
    model, inputs = study("frac_prevs", gap=40)
    assert model.options.gap == 40
    small = tracr.compress(model, 9, inputs=inputs[::8], recipe=QUICK)
    assert small.options.gap == 40
    assert all_inputs(model, lengths=[5]) == inputs


# Sweeps


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Killed after a group: what was done is there, and only the rest is made; runs are those of `compress`."""
    parquet = pytest.importorskip("pyarrow.parquet")
    example = programs.EXAMPLES["frac_prevs"]
    model = tracr.compile(example.program, "ax", 3, level=0)
    recipe = Recipe(steps=20, chunk=20)

    def dies(done: int, total: int, best: float) -> None:
        if done == 2:
            raise SystemExit

    with pytest.raises(SystemExit):
        sweep({"f": model}, [3, 5], [0, 1], tmp_path, recipe=recipe, group=2, progress=dies)
    seen: list[tuple[int, int]] = []
    done = sweep(
        {"f": model}, [3, 5, 99], [0, 1], tmp_path, recipe=recipe, group=2, progress=lambda d, t, _: seen.append((d, t))
    )
    assert (done.made, done.found, done.failed) == (2, 2, 0)
    assert seen == [(2, 4), (4, 4)]
    rows = parquet.read_table(done.results).to_pylist()
    assert sorted((row["dim"], row["seed"]) for row in rows) == [(3, 0), (3, 1), (5, 0), (5, 1)]
    assert sweep({"f": model}, [3, 5], [0, 1], tmp_path, recipe=recipe).made == 0
    alone = tracr.compress(model, 5, "sgd", 1, recipe=recipe)
    (row,) = [row for row in rows if (row["dim"], row["seed"]) == (5, 1)]
    assert row["loss"] == pytest.approx(alone.training.loss, rel=1e-3)
    assert np.allclose(np.reshape(row["W"], (model.d_model, 5)), alone.W, atol=1e-3)
    with pytest.raises(tracr.FormatError, match="another recipe"):
        sweep({"f": model}, [3], [0], tmp_path, recipe=Recipe(steps=21))
    with pytest.raises(tracr.FormatError, match="another model f"):
        sweep({"f": tracr.compile(example.program, "axy", 3, level=0)}, [3], [0], tmp_path, recipe=recipe)


def test_failed_runs_are_reported_and_can_be_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that fails is a row with its error; --retry does it again."""
    parquet = pytest.importorskip("pyarrow.parquet")
    module = importlib.import_module("tracr.compress.sweep")
    model = tracr.compile(programs.EXAMPLES["frac_prevs"].program, "ax", 3, level=0)
    recipe = Recipe(steps=20, chunk=20)

    def broken(*_: object, **__: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(module.RecipeTrainer, "train", broken)
        done = sweep({"f": model}, [3], [0, 1], tmp_path, recipe=recipe)
    assert (done.made, done.failed) == (2, 2)
    rows = parquet.read_table(done.results).to_pylist()
    assert all(row["status"] == "failed" and "no room" in row["error"] for row in rows)
    assert sweep({"f": model}, [3], [0, 1], tmp_path, recipe=recipe).made == 0
    one = sweep({"f": model}, [3], [0], tmp_path, recipe=recipe, retry=True)
    assert (one.made, one.failed) == (1, 1)  # the failed run of the other seed stays
    again = sweep({"f": model}, [3], [0, 1], tmp_path, recipe=recipe, retry=True)
    assert (again.made, again.failed) == (1, 0)


def test_sweeps_over_processes(tmp_path: Path) -> None:
    """Two processes give the rows one does."""
    parquet = pytest.importorskip("pyarrow.parquet")
    from tracr.workers import over_processes

    model = tracr.compile(programs.EXAMPLES["frac_prevs"].program, "ax", 3, level=0)
    recipe = Recipe(steps=20, chunk=20)
    results = []
    for jobs in (1, 2):
        with over_processes(jobs) as workers:
            done = sweep({"f": model}, [3, 4], [0], tmp_path / str(jobs), recipe=recipe, group=1, workers=workers)
        rows = parquet.read_table(done.results).to_pylist()
        results.append(sorted((row["dim"], round(row["loss"], 5)) for row in rows))
    assert results[0] == results[1]


def test_a_sweep_takes_inputs_starts_and_decay(tmp_path: Path) -> None:
    """A run of a sweep over a case study is that of `compress`; another setting of the sweep is refused."""
    parquet = pytest.importorskip("pyarrow.parquet")
    model, inputs = study("sort_unique", gap=40)
    recipe = Recipe(steps=20, chunk=20, weight_decay=0.5)
    options: dict[str, Any] = {"recipe": recipe, "init_scale": 0.4}
    done = sweep({"s": model}, [5, 8, 11], [0, 1], tmp_path, inputs={"s": inputs}, group=4, **options)
    (row,) = [row for row in parquet.read_table(done.results).to_pylist() if (row["dim"], row["seed"]) == (8, 1)]
    alone = tracr.compress(model, 8, "sgd", 1, inputs=inputs, **options)
    report = alone.report(inputs)
    assert row["loss"] == pytest.approx(alone.training.loss, rel=1e-3)
    assert row["output_loss"] == pytest.approx(report.output_loss, rel=1e-3)
    assert row["compiled_loss"] == pytest.approx(report.compiled_output_loss)
    assert row["accuracy"] == pytest.approx(report.accuracy, abs=0.02)
    assert row["cosine"] == pytest.approx(report.mean_cosine, abs=1e-3)
    assert row["read_back"] == pytest.approx(list(alone.read_back.values()), rel=1e-3)
    for other in ({"init_scale": 0.5}, {"recipe": Recipe(steps=20, chunk=20)}):
        with pytest.raises(tracr.FormatError, match="another"):
            sweep({"s": model}, [5], [0], tmp_path, inputs={"s": inputs}, **{**options, **other})
    with pytest.raises(tracr.FormatError, match="another model s"):
        sweep({"s": model}, [5], [0], tmp_path, inputs={"s": inputs[1:]}, **options)
    with pytest.raises(tracr.TracrError, match="a model with inputs"):
        sweep({"s": model}, [5], [0], tmp_path, inputs={"t": inputs}, **options)


def test_groups_of_a_sweep_share_their_compiled_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their dims, all groups of a model train with one program, and the inputs are prepared once."""
    pytest.importorskip("pyarrow.parquet")
    module = importlib.import_module("tracr.compress.sweep")
    prepared: list[int] = []
    traced: list[int] = []
    task_before, chunk_before = module.task_of, module.RecipeTrainer._chunk

    def counted_task(*given: Any) -> Any:
        prepared.append(1)
        return task_before(*given)

    def counted_chunk(*given: Any) -> Any:
        traced.append(1)
        return chunk_before(*given)

    monkeypatch.setattr(module, "task_of", counted_task)
    monkeypatch.setattr(module.RecipeTrainer, "_chunk", counted_chunk)
    model = tracr.compile(programs.EXAMPLES["frac_prevs"].program, "ax", 3, level=0)
    done = sweep({"f": model}, [2, 3, 4], range(3), tmp_path, recipe=Recipe(steps=20, chunk=20), group=4)
    assert (done.made, done.failed) == (9, 0)
    assert len(prepared) == 1
    assert len(traced) == 1


def test_the_command_line_sweeps_over_case_studies(tmp_path: Path) -> None:
    """--studies has the paper's inputs (sort_unique without repeated tokens); other programs take --distinct."""
    parquet = pytest.importorskip("pyarrow.parquet")
    from typer.testing import CliRunner

    from tracr.cli import app

    base = ["sweep", "--dims", "6", "--seeds", "0", "--steps", "20", "--gap", "40", "--decay", "0.2", "--init", "0.3"]
    for number, chosen in enumerate((["--studies", "sort_unique"], ["--programs", "sort_unique", "--distinct"])):
        done = CliRunner().invoke(app, [*base, *chosen, "-o", str(tmp_path / str(number))])
        assert done.exit_code == 0, done.output
        (row,) = parquet.read_table(tmp_path / str(number) / "results.parquet").to_pylist()
        assert row["status"] == "done"
    wrong = CliRunner().invoke(app, [*base, "-o", str(tmp_path / "none")])
    assert wrong.exit_code != 0
