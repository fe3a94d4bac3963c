"""Beams, batches and samples: how translations are searched for, by any engine."""
