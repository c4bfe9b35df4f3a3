"""What commands that talk to a broker share."""
