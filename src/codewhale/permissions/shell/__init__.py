"""What a command line would do, told without running it."""
