"""The compiled model: its weights, the forward pass, and what every direction means."""
