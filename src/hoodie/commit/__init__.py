"""A write on the timeline: begun, described, published or rolled back."""
