"""The estimators of masks, one file each, and the other models that ``fit`` gives: rewards and learning curves."""
