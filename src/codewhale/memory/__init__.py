"""Memory: what people want remembered, where it stands, what of it is sent, and the layers that make up a context."""
