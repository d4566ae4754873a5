"""Session, loop, dispatch, projection, prompt, guards: the order of things."""
