"""The parts that estimators build their models of: layers, densities, messages, and what pairs of factors look like."""
