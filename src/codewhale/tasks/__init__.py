"""Durable tasks: rows of the journal, the sessions that are their conversations, and who works at them."""
