"""Readers of feeds beside ours, on directories of feeds that somebody names."""
