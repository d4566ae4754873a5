"""Tools of other programs: servers of the Model Context Protocol, reached through one broker process."""
