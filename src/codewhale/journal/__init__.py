"""What must outlive a process: runs, attempts, waits, leases, schedules and intents of side effects."""
