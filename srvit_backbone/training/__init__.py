"""What training in every framework shares: the stream, fitting to a machine, the record."""
