"""What happened in a session, as blocks of lines: the fold of its events, how each block is drawn, and the view."""
