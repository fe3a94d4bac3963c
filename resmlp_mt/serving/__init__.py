"""Trained models behind HTTP: requests, the queue where they meet, and a page to translate in."""
