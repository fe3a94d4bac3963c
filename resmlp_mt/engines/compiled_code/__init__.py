"""Exports and checkpoints in compiled code: what hands arrays to `resmlp_mt/native`."""
