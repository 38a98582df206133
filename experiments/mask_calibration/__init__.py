"""Can a mask be judged without labels? What ``calibrate`` says, beside what the world says.

    python -m experiments.mask_calibration run --preset laptop [--estimators blurred,random] [--processes 2]
    python -m experiments.mask_calibration report

``calibrate`` sees recorded transitions and scores, nothing else. At each threshold it tries, its estimate of the
share of wrong counterfactuals is written down beside the truth: counterfactuals made with that threshold from
other recordings, put back into the world. Estimators are learned ones; two made from the exact mask, so that their
quality is known (``blurred`` is unsure near the borders of contacts, ``noisy`` everywhere); and three broken ones
that must be refused. The method was developed on data seeds below 10; the presets use others.
"""
