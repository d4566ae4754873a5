"""Pure decisions: what may run, and which rule says so."""
