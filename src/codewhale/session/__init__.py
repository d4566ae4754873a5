"""One conversation: its log, the folds over it, what is sent to the model, its budget and its listeners."""
