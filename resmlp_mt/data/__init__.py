"""Files -> batches. This room knows no model."""
