"""Which threshold makes a mask of scores, and how far to trust it, told from data alone."""
