"""From a schedule to weights: layout of the residual stream, slot reuse, assembly."""
