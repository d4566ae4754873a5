"""The person's faces: one file per slash command family."""
