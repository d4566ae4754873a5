"""What a session adds up to and what its model is told: pure folds of the log."""
