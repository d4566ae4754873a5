"""The terminal interface: panels that are fed events and ask by queries, and the app that lays them out."""
