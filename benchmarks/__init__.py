"""Plain scripts that measure the package beside the naive way and the physical limit."""
