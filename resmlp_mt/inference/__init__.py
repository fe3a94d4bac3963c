"""Trained models at work: translating raw text, averaging checkpoints."""
