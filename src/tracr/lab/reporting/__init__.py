"""The report of a run: tables, figures and one page, made from the table of results alone.

lab_report.py         `report`, `LabReport`, and `TracksReport`, that of several runs
results_table.py      the rows, with short names for methods and realisations; row_checks.py: refuses damaged ones
top_edges.py          the top of a ranking, and ties at its border
comparing.py          the laboratory's questions, answered with intervals
rank_correlation.py   Spearman's rank correlation, with an interval
tables.py             the answers as tables, for the page and as CSV; sentences.py: as sentences
dial_series.py        realisations that differ in one dial
page.py               the page; page.css and page.js are parts of it
html_pieces.py        its tables and texts; plots.py, panels.py: its plots
case_pages.py         a case on the page; circuit_drawing.py: its circuit as SVG
figures.py            publication figures (matplotlib)
saved_report.py       reports as files
variables_report.py   `VariablesReport`, that of the track "variables"; features_report.py: `FeaturesReport`, that of
                      the track "features" (feature_tables.py: its tables); answers_report.py: `AnswersReport`, that of
                      explanations and predictions; track_table.py, track_page.py: their rows,
                      their pages
"""

from __future__ import annotations

from tracr.lab.reporting.answers_report import AnswersReport
from tracr.lab.reporting.features_report import FeaturesReport
from tracr.lab.reporting.lab_report import LabReport, TracksReport, report
from tracr.lab.reporting.tables import ReportTable
from tracr.lab.reporting.variables_report import VariablesReport

__all__ = ["AnswersReport", "FeaturesReport", "LabReport", "ReportTable", "TracksReport", "VariablesReport", "report"]
