"""What two programs must agree on, and nothing else: one module a format."""
