"""Learned masks on random worlds: how well each kind of influence is ranked, by the types of source and target.

    python -m experiments.mask_zoo run --preset laptop [--estimators DistilledLikelihood] [--processes 2]
    python -m experiments.mask_zoo report

Every run draws a world of the zoo with one kind of influence, fits an estimator to recorded transitions, and scores
other ones, recorded and recombined. No estimator sees a label, and each has the same settings on all worlds. The
presets use kinds to develop on; ``heldout`` has the others.
"""
