"""A command line as every shell reads it, and what it would meet on the disk."""
