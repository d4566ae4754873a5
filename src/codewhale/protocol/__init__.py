"""The words everyone says: pure data, no behaviour beyond its own shape."""
