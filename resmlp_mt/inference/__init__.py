"""Trained models at work: text to translations, pictures to classes."""
