"""Training of the line finder and the recogniser on real and drawn text lines."""
