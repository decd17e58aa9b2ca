"""Other people's HTTP APIs; their errors become ours, here only."""
