"""Passes from one program to another: sharing, encodings, rewrites of tables."""
