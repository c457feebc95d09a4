"""Seeing a compiled model.

explorer/    one self-contained HTML page that runs the model and its program
"""
