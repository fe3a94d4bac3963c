"""Files of models and results: found by name, written whole or not at all."""
