"""How networks learn from transitions: what they see, the training loop, and fitted models as files."""
