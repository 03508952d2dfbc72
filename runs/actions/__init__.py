"""What people may do: one function each. All refuse with `Refused`, which says what to do instead."""
