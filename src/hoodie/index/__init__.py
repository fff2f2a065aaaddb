"""Which file group holds a key: candidates and hits, Arrow in and out."""
