"""What the nodes of a program's graph hold, under the keys existing code uses."""

__all__ = ["EXPR", "ID", "MODEL_BLOCK", "OUTPUT_BASIS", "VALUE_SET"]

ID = "ID"
"""The node's own name."""
EXPR = "EXPR"
"""The expression."""
VALUE_SET = "VALUE_SET"
"""The values an s-op may take, where they are listed."""
OUTPUT_BASIS = "OUTPUT_BASIS"
"""The directions of the residual stream that hold an s-op."""
MODEL_BLOCK = "MODEL_BLOCK"
"""The sub-layer that writes them."""
