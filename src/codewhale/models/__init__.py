"""Model providers: what is known of them, wire formats, connections, keys and prices."""
