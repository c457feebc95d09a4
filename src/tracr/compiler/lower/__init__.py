"""The pass `lower`: the circuit under construction (`circuit_builder.py`), and the components of each operation."""
