"""Pictures and translations of the one event stream."""
