"""Texts to their translations, and the lines of files, pipes and tables that hold them."""
