"""What would make sense in another project: text, beneath-root paths, ids, clock, numbers."""
