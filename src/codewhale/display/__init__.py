"""What every frontend shows: the transcript as a model, its lines, and the words of each language."""
