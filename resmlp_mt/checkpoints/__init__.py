"""Checkpoints: read safely, averaged, packed, and brought from and to published layouts."""
