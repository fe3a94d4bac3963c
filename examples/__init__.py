"""Studies and recipes. `python -m examples.lesson` writes the quick start's corpus."""
