"""Doors: one file each."""
