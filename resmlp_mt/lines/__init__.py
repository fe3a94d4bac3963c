"""Lines of files, pipes and tables, as `resmlp-mt translate` takes them in."""
