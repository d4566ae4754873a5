"""Drafts, sent messages and attachments, kept in files."""
