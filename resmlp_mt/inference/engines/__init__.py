"""What runs a model: exported folders, and checkpoints that fairseq loaded."""
