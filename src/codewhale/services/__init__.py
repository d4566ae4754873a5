"""Live things: shell jobs, test running, the workspace writer. Siblings do not import one another."""
