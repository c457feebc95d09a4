"""From expressions to tables: trace, infer and its rules."""
