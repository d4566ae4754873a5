"""Automations: durable tasks that begin by the clock."""
