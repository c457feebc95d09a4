"""The forward pass in C, for calls that need no activations; optional."""
