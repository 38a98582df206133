"""Influences found by trees: what surprises of one factor are explained by others."""
