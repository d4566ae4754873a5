"""Skills and rules: what they are, where they stand, when they apply, and what they leave of the tools."""
