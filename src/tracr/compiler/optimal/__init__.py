"""What a solver finds and what no schedule can beat; an ordinary compilation uses neither."""
