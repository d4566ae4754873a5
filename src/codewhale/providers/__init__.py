"""Wire dialects and model providers; a new one is one file."""
