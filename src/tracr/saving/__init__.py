"""Saved models: folders of safetensors and JSON. docs/format.md is the schema.

models.py         save and load
folders.py        writing a folder all or nothing, reading its files
program_json.py   the tabulated program as JSON
values_json.py    values of any type as JSON
json_reader.py    reading JSON that may be broken or hostile
pickling.py       models in pickles
"""
