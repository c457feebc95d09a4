"""What step 3 is made of: the circuit under construction, and classes of values that readers treat alike."""
