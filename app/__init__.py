"""Wakebell: one bounded batch of work each time somebody rings."""

__version__ = "0.1.0"
