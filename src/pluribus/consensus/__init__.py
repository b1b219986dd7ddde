"""From many answers to one: votes and agreement, pure functions on plain values."""
