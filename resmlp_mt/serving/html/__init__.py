"""HTML that is translated: its text in runs, and its tags put around words again."""
