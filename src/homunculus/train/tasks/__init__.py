"""What each network learns: its losses, and where its batches come from."""
