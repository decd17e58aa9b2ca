"""The queue beside its peers and beside hand-written loops."""
