"""Whether what must always hold does hold, and how to mend what does not."""
