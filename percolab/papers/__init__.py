"""What only reproduces a published paper: it imports percolab and is imported by nothing."""
