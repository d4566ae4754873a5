"""What a call was meant to be: damaged payloads, other names, calls written as text."""
