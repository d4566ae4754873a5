"""Live things: shell jobs, test runs, hooks, skills. Siblings do not import one another."""
