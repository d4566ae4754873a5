"""Jobs that begin, answer and end without a live session: checking calls, replaying, importing, probing, totals."""
