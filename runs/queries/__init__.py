"""What people see. Nothing here writes; each page costs a constant number of queries."""
