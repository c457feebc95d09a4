"""Runs models and tabulated programs: the forward pass, the C kernel, tokens and outputs, the table interpreter."""
