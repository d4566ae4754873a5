"""Speech: text to a WAV file by the system's voice program or a configured address, and a file to the speakers."""
