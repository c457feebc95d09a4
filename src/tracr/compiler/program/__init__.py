"""Passes from one program to another: shared expressions, encodings, rewrites of tables."""
