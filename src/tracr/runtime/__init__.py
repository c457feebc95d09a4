"""Running a model: the forward pass, tokens and outputs, the table interpreter, the kernel in C."""
