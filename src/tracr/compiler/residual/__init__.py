"""Which variable is in which dimension, and the weights: layout, slot reuse, assembly, size."""
