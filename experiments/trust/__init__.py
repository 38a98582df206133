"""Does a verdict hold on worlds it was not developed on? What ``calibrate`` says, beside what each world says.

    python -m experiments.trust run --preset laptop [--processes 2]
    python -m experiments.trust report

Every world is drawn from kinds of influence that are held out (``counterpoint.worlds.zoo.HELD_OUT``). In each of them
masks are judged without labels: the exact one; the exact one made worse on purpose (of its edges that come and go, a
tenth, half or all are lost); a mask by distance; and that with ``masks.Supported``. The truth is the share of wrong
ones among counterfactuals made by the same mask from another recording, put back into the world. Swaps of what never
changes are left out on both sides.
"""
