"""Live things: shell jobs, test runs, hooks. Siblings do not import one another."""
