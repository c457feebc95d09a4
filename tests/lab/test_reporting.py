"""The report of a run: its numbers are those of the table, every claim has its interval, hostile names are text."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracr
from tests.cli.calling import invoke, run
from tests.lab.result_rows import HOSTILE, Settings, brute_force, failed, result_rows
from tracr import lab
from tracr.lab.reporting import sentences
from tracr.lab.reporting.circuit_drawing import draw_circuit
from tracr.lab.reporting.comparing import EVERYWHERE, correlations, leads, reported_parts, seed_spreads
from tracr.lab.reporting.dial_series import dial_series
from tracr.lab.reporting.results_table import result_table


class Page(HTMLParser):
    """What a page contains: its tags with attributes, and the cells of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.text: list[str] = []
        self._rows: list[list[str]] = []
        self._cell: list[str] | None = None
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        self._inside.append(tag)
        if tag == "table":
            self._rows = self.tables.setdefault(str(given.get("id")), [])
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            self._rows[-1].append("".join(self._cell))
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)
        if self._inside and self._inside[-1] not in ("script", "style"):
            self.text.append(data)


def means(rows: list[dict[str, Any]], value: Callable[[dict[str, Any]], float | None]) -> dict[tuple[str, ...], float]:
    """The mean over cases of the mean over seeds, of each (realisation, dials, method), without our statistics."""
    groups: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        number = value(row)
        if number is not None:
            groups[row["realisation"], row["dials"], row["method"]][row["case"]].append(number)
    return {key: sum(sum(v) / len(v) for v in cases.values()) / len(cases) for key, cases in groups.items()}


def shown(rows: list[list[str]], realisation: str, method: str) -> dict[str, str]:
    """The cells of a row of a table on the page, by column."""
    head, *body = rows
    (found,) = [row for row in body if row[:2] == [realisation, method]]
    return dict(zip(head, found, strict=True))


def test_scores_on_the_page_are_those_of_the_table() -> None:
    """AUROC, average precision and exact are computed again from the numbers of the edges, by their definitions."""
    rows = result_rows()
    page = Page(lab.report(rows).html)
    for place, name in enumerate(("AUROC", "average precision", "exact")):
        expected = means(rows, lambda row, place=place: float(brute_force(row)[place]))  # type: ignore[misc]
        for (realisation, dials, method), mean in expected.items():
            label = ":".join([realisation, *(f"{k}={v}" for k, v in json.loads(dials).items())])
            cell = shown(page.tables["table-leaderboard"], label, method)[name]
            assert re.fullmatch(rf"{mean:.3f} \[\d\.\d{{3}}, \d\.\d{{3}}\]", cell), (cell, mean)
    undefined = sum(row["cpr"] is None for row in rows)
    head, *body = page.tables["table-left_out"]
    assert undefined == sum(int(row[head.index("CPR undefined")]) for row in body) > 0


def test_scores_are_those_of_scikit_learn() -> None:
    """AUROC and average precision of the leaderboard, from the numbers of the edges."""
    sklearn = pytest.importorskip("sklearn.metrics")
    rows = result_rows(draw=3)

    def by(score: Callable[..., float]) -> Callable[[dict[str, Any]], float]:
        def value(row: dict[str, Any]) -> float:
            known = [
                (kind == "alone", x) for kind, x in zip(row["truth"], row["numbers"], strict=True) if kind != "jointly"
            ]
            return float(score(*zip(*known, strict=True)))

        return value

    found: dict[tuple[str, ...], lab.Standing]
    found = {(one.realisation, one.dials, one.method): one for one in lab.report(rows).leaderboard()}
    for name, score in (("auroc", sklearn.roc_auc_score), ("average_precision", sklearn.average_precision_score)):
        for key, mean in means(rows, by(score)).items():
            estimate = found[key].scores[name]
            assert estimate is not None
            assert estimate.mean == pytest.approx(mean)


def test_the_report_of_a_real_run(tmp_path: Path) -> None:
    """From the Parquet file: page, tables and figures; circuits have the sentences of the zoo."""
    parquet = pytest.importorskip("pyarrow.parquet")
    lab.run(["exact", "random"], ["hist", "count", "hist_so_far"], ["compiled"], [0, 1], dials=["rotation"],
            folder=tmp_path / "out", conditions=lab.Conditions(pairs=16))  # fmt: skip
    (tmp_path / "out" / "notes.md").write_text("# Meaning\n\nNot **much** <b>\n\n- `one`\n- two\n")
    printed = invoke("lab", "report", tmp_path / "out", "-o", tmp_path / "page.html", "--title", "A & B")
    assert "page.html: 24 rows of 3 cases" in printed
    text = (tmp_path / "page.html").read_text()
    assert "<title>A &amp; B</title>" in text
    assert "<h3>Meaning</h3><p>Not <strong>much</strong> &lt;b&gt;</p><ul><li><code>one</code></li>" in text
    assert "Counts, for hist, the positions with the same token." in text
    rows = parquet.read_table(tmp_path / "out" / "results.parquet").to_pylist()
    page = Page(text)
    for key, mean in means(rows, lambda row: brute_force(row)[0]).items():
        assert shown(page.tables["table-leaderboard"], key[0], key[2])["AUROC"].startswith(f"{mean:.3f} [")
    for part in (tmp_path / "out" / "parts").iterdir():
        part.unlink()
    assert lab.report(tmp_path / "out", title="A & B").html == text


def every_sentence(report: lab.LabReport) -> list[str]:
    """All sentences that are made from a table."""
    found = report.findings
    makers = (sentences.about_leads, sentences.about_correlations, sentences.about_seeds, sentences.about_parts)
    return [*sentences.about_table(report.table), *(one for make in makers for one in make(found))]


@pytest.mark.parametrize("cases", [("hist",), ("hist", "count"), ("hist", "count", "dyck1", "sort")])
@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)])
def test_no_number_without_its_interval(cases: tuple[str, ...], seeds: tuple[int, ...]) -> None:
    """Every estimate in a sentence and in a table of estimates is followed by its interval; with one case none is."""
    report = lab.report(result_rows(cases, seeds))
    assert isinstance(report, lab.LabReport)
    said = every_sentence(report)
    bare = re.compile(r"−?\d+\.\d+")
    for sentence in said:
        without = re.sub(r"−?\d+\.\d{3} \[−?\d+\.\d{3}, −?\d+\.\d{3}\]", "", sentence)
        assert not bare.search(without), sentence
    page = Page(report.html)
    for name in ("leaderboard", "leads", "changes", "correlations", "seeds", "parts"):
        for row in page.tables.get(f"table-{name}", [[]])[1:]:
            for cell in row[2:-2]:
                assert not bare.search(cell) or (re.search(r" \[.*\]", cell) and len(cases) > 1), (name, row)
    if len(cases) == 1:
        assert not any("[" in sentence for sentence in said)
        assert "one case: no interval" in report.html
    if len(seeds) == 1:
        assert "There is one seed: nothing can be said about the variation between seeds." in said


def test_intervals_are_those_of_the_hierarchical_bootstrap() -> None:
    """The lead of the best method is the mean of differences on the same cases and seeds."""
    rows = result_rows()
    table = result_table(rows)
    (lead,) = [one for one in leads(table) if one.realisation == "rotated"]
    assert (lead.best, lead.next) == ("exact", "eap-ig-inputs")
    value = {(row["method"], row["case"], row["seed"]): row["auroc"] for row in rows if row["realisation"] == "rotated"}
    differences = {
        case: [value["exact", case, seed] - value["eap-ig-inputs", case, seed] for seed in (0, 1, 2)]
        for case in table.cases
    }
    assert lead.ahead == lab.hierarchical_bootstrap(
        {case: differences[case] for case in ("hist", "count", "dyck1", "sort")}
    )


def test_faithfulness_and_truth() -> None:
    """CPR was made from AUROC: they agree; circuits without one of the scores are counted."""
    rows = result_rows()
    pooled = {(one.where, one.faithfulness, one.truth): one for one in correlations(result_table(rows))}
    one = pooled[EVERYWHERE, "cpr", "auroc"]
    assert one.pooled is not None
    assert one.pooled.low is not None
    assert one.within is not None
    assert one.pooled.low > 0.6
    assert one.within.mean > 0.5
    assert one.circuits + one.left_out == len(rows)
    assert one.left_out == sum(row["cpr"] is None for row in rows)
    opposite = pooled[EVERYWHERE, "cmd", "auroc"].pooled
    assert opposite is not None
    assert opposite.mean < -0.5


def test_seeds_and_decoys() -> None:
    """Random answers overlap less than good ones; the edges of decoys are counted where a table has them."""
    table = result_table(result_rows())
    spread = {(one.realisation, one.method): one for one in seed_spreads(table)}
    good, bad = spread["compiled", "exact"], spread["compiled", "random"]
    assert good.overlap is not None
    assert bad.overlap is not None
    assert good.overlap.mean > bad.overlap.mean + 0.3
    assert good.truth_overlap == lab.Estimate(1.0, 1.0, 1.0, 4, 4)
    row = next(row for row in table.rows if row.method == "random" and row.top.border)
    assert row.found == {*row.alone} - {*row.missed} | {*row.extra} - row.top.border
    for one in reported_parts(table):
        assert (one.unread is not None) == (one.realisation == "decoys")
        assert one.jointly is not None
    given = {
        (row["case"], row["seed"]): row
        for row in result_rows()
        if (row["realisation"], row["method"]) == ("decoys", "random")
    }
    expected = defaultdict(list)
    for row in table.rows:
        if (row.realisation, row.method) == ("decoys", "random"):
            assert row.unread is not None
            expected[row.case].append(share_by_chance(given[row.case, row.seed], row.unread))
    (part,) = [one for one in reported_parts(table) if (one.realisation, one.method) == ("decoys", "random")]
    assert part.unread is not None
    assert part.unread.mean == pytest.approx(np.mean([np.mean(shares) for shares in expected.values()]), abs=0.01)


def share_by_chance(row: dict[str, Any], edges: frozenset[str]) -> float:
    """How many of some edges are at the top, on average, if ties are broken at random: 3,000 times."""
    rng = np.random.default_rng(0)
    known = [(x, edge) for x, kind, edge in zip(row["numbers"], row["truth"], row["edges"], strict=True)
             if kind != "jointly"]  # fmt: skip
    numbers, names = np.array([x for x, _ in known]), np.array([edge in edges for _, edge in known])
    counts = [names[np.lexsort((rng.random(len(known)), -numbers))[: row["alone"]]].sum() for _ in range(3_000)]
    return float(np.mean(counts)) / len(edges)


def test_a_method_that_ties_all_edges_reports_them_by_chance() -> None:
    """Not all of them, and not none: their share is that of the needed edges."""
    rows = []
    for row in result_rows():
        inert = [edge for edge, kind in zip(row["edges"], row["truth"], strict=True) if kind == "inert"]
        rows.append({**row, "numbers": [0.0] * len(row["edges"]), "extra": inert})
    for one in reported_parts(result_table(rows)):
        assert one.jointly is not None
        assert 0.15 < one.jointly.mean < 0.35
        if one.unread is not None:
            assert one.other is not None
            assert one.unread.mean == pytest.approx(one.other.mean)
            assert 0.15 < one.unread.mean < 0.35


def test_what_is_left_out_is_counted() -> None:
    """Failed rows, twins that were not admitted, and repeated rows; versions of one method are told apart."""
    rows = result_rows()
    rows[0] = failed(rows[0], "ValueError: <no>")
    rows[1] = {**rows[1], "admitted": False}
    report = lab.report([*rows, rows[5]])
    assert isinstance(report, lab.LabReport)
    said = sentences.about_table(report.table)
    assert f"give {len(rows)} rows; {len(rows) - 2} count for the scores, 1 failed, 0 are of " in said[0]
    assert said[0].endswith("a case does not allow, and 1 of models that were not admitted.")
    assert "1 row of runs that were there already were left out." in said
    assert report.tables["errors"].rows == (("compiled", "ValueError: <no>", 1, "hist"),)
    assert "&lt;no&gt;" in report.html
    refused = [failed(rows[2], "not made: no"), {**failed(rows[3], "not admitted: no"), "admitted": False}]
    left = lab.report([*refused, *rows[4:]]).tables["left_out"]
    assert left.columns[2:7] == ("rows", "scored", "failed", "not made", "not admitted")
    assert [sum(row[place] for row in left.rows) for place in range(2, 7)] == [190, 188, 0, 1, 1]
    newer = [{**row, "version": "2"} for row in result_rows() if row["method"] == "eap"]
    assert "eap (version 2)" in lab.report([*result_rows(), *newer]).table.methods


def test_hostile_names_are_text() -> None:
    """Names of cases, methods, realisations and errors are shown as they are, and are never HTML."""
    methods: list[tuple[str, Settings, float]] = [(name, {}, 1.0) for name in HOSTILE[:3]]
    rows = result_rows(HOSTILE, (0, 1), methods, [("compiled", {}), *((name, {"x": name}) for name in HOSTILE[:3])])
    rows[0] = failed(rows[0], HOSTILE[0])
    rows.append({**rows[1], "case": "lone \ud800 surrogate"})
    report = lab.report(rows, title=HOSTILE[1], notes="".join(HOSTILE))
    report.html.encode()
    page = Page(report.html)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert not [name for _, given in page.tags for name in given if name.startswith("on")]
    cases = [given["data-case"] for tag, given in page.tags if tag == "details"]
    assert set(HOSTILE) <= set(cases)
    data = json.loads(report.html.partition('id="lab-data">')[2].partition("</script>")[0])
    assert set(HOSTILE) <= set(data["cases"])
    for table in report.tables.values():
        assert len(list(csv.reader(io.StringIO(table.csv())))) == len(table.rows) + 1


def test_tables_as_csv(tmp_path: Path) -> None:
    """An estimate has five columns, with all digits."""
    report = lab.report(result_rows())
    files = report.save_tables(tmp_path / "tables")
    assert {file.stem for file in files} == set(report.tables)
    for row in csv.DictReader(io.StringIO((tmp_path / "tables" / "leaderboard.csv").read_text(encoding="utf-8"))):
        standing = report.table.standings[row["realisation"], row["method"]]
        estimate = standing.scores["auroc"]
        assert estimate is not None
        assert [float(row[f"AUROC {part}"]) for part in ("mean", "low", "high", "cases", "values")] == [
            estimate.mean, estimate.low, estimate.high, estimate.cases, estimate.values]  # fmt: skip
    assert "tracr-lab" in report._repr_html_()
    assert repr(report).startswith("LabReport(192 rows: 4 cases, 4 realisations, 4 methods, 3 seeds")


def test_figures(tmp_path: Path) -> None:
    """Figures are returned, drawn when they are asked for, and can be written."""
    pytest.importorskip("matplotlib")
    figures = lab.report(result_rows(("hist", "count"), (0, 1))).figures
    assert {"auroc_by_realisation", "cmd_by_gap_of_compiled", "faithfulness_and_truth", "seeds"} <= set(figures)
    chosen = figures["auroc_by_gap_of_compiled"]
    assert [text.get_text() for text in chosen.axes[3].get_xticklabels()] == ["16", "256"]
    assert [axes.get_title() for axes in chosen.axes] == ["exact", "eap", "eap-ig-inputs", "random", "", ""]
    assert figures["auroc_by_gap_of_compiled"] is chosen
    chosen.savefig(tmp_path / "figure.svg")
    assert "<svg" in (tmp_path / "figure.svg").read_text()
    assert "auroc_by_gap_of_compiled" not in lab.report(result_rows(realisations=[("compiled", {})])).figures


@pytest.mark.slow
def test_a_folder_of_everything(tmp_path: Path) -> None:
    """Page, tables, and every figure as SVG and PDF; the same table gives the same bytes."""
    pytest.importorskip("matplotlib")
    first, again = (lab.report(result_rows(("hist", "count"), (0, 1))) for _ in range(2))
    assert first.save(tmp_path / "all") == tmp_path / "all" / "report.html"
    names = {path.name for path in (tmp_path / "all" / "figures").iterdir()}
    assert names == {f"{name}.{kind}" for name in first.figures for kind in ("svg", "pdf")}
    again.save(tmp_path / "again")
    for path in (tmp_path / "all").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(tmp_path / "all")).read_bytes(), path.name


def test_circuits_are_drawn_once_with_every_needed_edge() -> None:
    """A path for each edge that is needed with some seed; dashed if not with every seed."""
    rows = [row for row in result_table(result_rows(("sort", "dyck1"))).rows if row.case == "dyck1"]
    drawing = draw_circuit("title", rows, {"embed": ("a <b> word", "a sentence")})
    assert set(drawing.edges) == {*rows[0].alone, *rows[0].jointly}
    page = Page(drawing.svg)
    drawn = {given["data-edge"]: given["class"] for tag, given in page.tags if tag == "path"}
    assert drawn == {
        **dict.fromkeys(rows[0].jointly, "edge sometimes"),
        **dict.fromkeys(rows[0].alone, "edge always"),
    }
    assert "a &lt;b&gt; word" in drawing.svg
    assert lab.report(result_rows()).html.count('<svg class="circuit"') == 4


def test_dials_of_realisations() -> None:
    """Realisations that differ in one dial are a series; the default is one of its values."""
    labels = [
        "compiled",
        "compiled:gap=64",
        "compiled:gap=16",
        "twin:width=32",
        "twin",
        "decoys",
        "compiled:gap=8:level=0",
    ]
    found = {(one.realisation, one.dial): (one.values, one.labels) for one in dial_series(labels)}
    assert found == {
        ("compiled", "gap"): (("16", "64", "256"), ("compiled:gap=16", "compiled:gap=64", "compiled")),
        ("twin", "width"): (("32", "64"), ("twin:width=32", "twin")),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: {name: row[name] for name in row if name != "truth"}, "row 3 has no column truth"),
        (lambda row: {**row, "auroc": float("nan")}, "auroc is nan, not a finite number"),
        (lambda row: {**row, "status": "?"}, "neither done nor failed"),
        (lambda row: {**row, "settings": "{"}, "settings is not JSON"),
        (lambda row: {**row, "truth": row["truth"][1:]}, "edges but"),
        (lambda row: {**row, "extra": ["a->b"]}, "is no candidate"),
        (lambda row: {**row, "edges": ["a"] * len(row["edges"])}, "writer->reader|is no candidate"),
        (lambda row: {**row, "granularity": "head"}, "different granularity"),
        (lambda row: {**row, "seed": "0"}, "not a whole number"),
        (lambda row: 5, "is no row"),
    ],
)
def test_damaged_rows_are_refused(change: Callable[[dict[str, Any]], Any], message: str) -> None:
    """The error names the row and what is wrong with it."""
    rows: list[Any] = result_rows()
    rows[3] = change(rows[3])
    with pytest.raises(tracr.FormatError, match=message):
        lab.report(rows)


def test_no_rows_are_refused() -> None:
    """An empty table has no report."""
    with pytest.raises(tracr.FormatError, match="has no rows"):
        lab.report([])


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    """A file that is no Parquet, a table of something else, notes that are no text."""
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.parquet").write_bytes(b"PAR1 not at all PAR1")
    done = run("lab", "report", str(tmp_path), "-o", str(tmp_path / "page.html"))
    assert done.returncode == 1
    assert "a.parquet cannot be read" in done.stderr
    assert "hint: delete this file" in done.stderr
    assert not (tmp_path / "page.html").exists()
    parquet.write_table(arrow.table({"x": [1]}), tmp_path / "parts" / "a.parquet")
    with pytest.raises(tracr.InputError, match="is not a table of `tracr lab run`"):
        lab.report(tmp_path)
    (tmp_path / "notes.md").write_bytes(b"\xff\xfe")
    with pytest.raises(tracr.FormatError, match=r"notes\.md cannot be read"):
        lab.report(tmp_path)
    with pytest.raises(tracr.InputError, match="neither a page nor a folder"):
        lab.report(result_rows(("hist", "count"), (0,))).save(tmp_path / "page.pdf")


@pytest.mark.slow
def test_a_large_table() -> None:
    """100 cases × 6 realisations × 8 methods × 3 seeds are one page of less than 10 MB."""
    methods: list[tuple[str, Settings, float]] = [(name, {}, 1.0 - place / 8) for place, name in enumerate("abcdefgh")]
    realisations: list[tuple[str, Settings]] = [
        (name, {}) for name in ("compiled", "rotated", "superposed", "softened", "decoys", "twin")
    ]
    report = lab.report(result_rows([f"case {n}" for n in range(100)], (0, 1, 2), methods, realisations))
    assert len(report.table.rows) == 14_400
    assert len(report.html.encode()) < 10_000_000
    assert report.html.count('<svg class="circuit"') == 100


def test_the_synthetic_rows_are_consistent() -> None:
    """The rows that these tests use have the scores of their numbers."""
    for row in result_rows()[:20]:
        auroc, precision, exact = brute_force(row)
        assert (row["auroc"], row["average_precision"]) == (pytest.approx(auroc), pytest.approx(precision))
        assert row["exact"] == exact
