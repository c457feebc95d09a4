"""What step 3 is made of: the circuit under construction (`state.py`) and what each kind of operation adds to it."""
