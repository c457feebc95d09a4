"""Passes from one circuit to another: fold, prune, embed features."""
