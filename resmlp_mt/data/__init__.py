"""Files -> batches. This room knows neither fairseq nor a model."""
