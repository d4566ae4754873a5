"""Where a person types: the text, what completes it, what goes with it, and how nothing of it gets lost."""
