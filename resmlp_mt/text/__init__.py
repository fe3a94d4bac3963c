"""Texts as people write them, and what a model reads in their place. This room knows no model."""
