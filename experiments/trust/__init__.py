"""Does a verdict hold on worlds it was not developed on? What ``calibrate`` says, beside what each world says.

    python -m experiments.trust run --preset strangers [--processes 2]
    python -m experiments.trust robots --preset strangers
    python -m experiments.trust report --preset strangers

Every world is drawn from kinds of influence that are held out (``counterpoint.worlds.zoo.HELD_OUT``). In each of them
masks are judged without labels: the exact one, alone and with ``masks.Supported``; the exact one made worse on purpose
(of its edges that come and go, a thirtieth, a tenth, half or all are lost); masks by distance; and, in some worlds,
learned ones at the threshold that the verdict chooses and at two others. The truth is the share of wrong ones among
counterfactuals made by the same mask from another recording, put back into the world. Swaps of what never changes are
left out on both sides. ``robots`` does the same in MuJoCo environments, whose simulator says what is wrong.
"""
