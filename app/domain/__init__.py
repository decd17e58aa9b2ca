"""Types and decisions: no I/O, no clock and no randomness of its own."""
