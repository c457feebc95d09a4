"""Compiled models in other libraries: one adapter each, imported only when asked for."""
