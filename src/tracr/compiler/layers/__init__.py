"""Which component runs in which layer: earliest, narrowest; merged heads, shared neurons."""
