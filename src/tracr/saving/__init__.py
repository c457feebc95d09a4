"""Saved models: folders of safetensors and JSON. docs/format.md is the schema.

models.py         save and load
folders.py        writes a folder completely or not at all; reads its files
program_json.py   the tabulated program as JSON
values_json.py    values of any type as JSON
variant_json.py   the variant of a model as JSON
schedule_json.py  the schedule of a solver as JSON
json_reader.py    reads JSON that may be broken or hostile
pickling.py       models in pickles
"""
