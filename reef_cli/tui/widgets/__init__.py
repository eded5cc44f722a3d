"""What the dashboard's screens are made of."""
