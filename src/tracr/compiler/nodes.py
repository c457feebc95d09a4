"""The keys that existing code uses for the data of graph nodes."""

__all__ = ["EXPR", "ID", "MODEL_BLOCK", "OUTPUT_BASIS", "VALUE_SET"]

ID = "ID"
"""The node's own name."""
EXPR = "EXPR"
"""The expression."""
VALUE_SET = "VALUE_SET"
"""The values an s-op may take, if they are listed."""
OUTPUT_BASIS = "OUTPUT_BASIS"
"""The directions of the residual stream that hold an s-op."""
MODEL_BLOCK = "MODEL_BLOCK"
"""The sub-layer that writes them."""
