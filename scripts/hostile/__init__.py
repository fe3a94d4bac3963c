"""Hostile files for `scripts/fuzz.py`: how they are made, opened, and shut in meanwhile."""
