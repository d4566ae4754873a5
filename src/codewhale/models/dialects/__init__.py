"""Wire formats: a conversation as request bytes, answers as stream events. Pure."""
