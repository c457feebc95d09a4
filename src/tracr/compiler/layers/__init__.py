"""Passes that put components into layers (`assign`, `schedule`, `stack`) and merge them there."""
