"""The compiled model: its weights, its forward pass, and the meaning of every direction."""
