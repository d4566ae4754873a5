"""What opens over the conversation: pickers, centres, reports, each loaded when it is first opened."""
