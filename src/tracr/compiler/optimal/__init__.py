"""A solver for the best schedule, and lower bounds on the size of a model. An ordinary compilation uses neither."""
