"""Forward models of sprites, and what counterfactuals do for them: appendices D and F of the paper.

    python -m experiments.dynamics run --preset laptop [--processes 2]
    python -m experiments.dynamics report

Appendix D: ``linear``, ``mlp`` and ``lstm`` models are fitted to predict the next state, then rolled out from fresh
states, each step on what the last one gave. Appendix F: the same network learns from 2,000 transitions alone
(``none``), with 35,000 rows that the identity mask made (``identity``), with as many exact counterfactuals (``exact``),
and, which the paper has not, with those of a mask that was learned without labels (``learned``).

Differences from the paper's code:

1. Models predict standardised columns. In appendix F the network predicts the change of the state, see
   ``counterpoint.learn.estimators.learning_curve``. Errors are in variances of the change: always predicting the mean
   change has an error of 1.
2. The LSTM goes through the columns of the next state one after another, as the paper says, each told of those before
   it. In the code it went through sprites, and its output was its hidden state.
3. Training in appendix D stops after 40 epochs, or 15 without progress, where the code had 500 and 100; batches of the
   LSTM have 256 rows instead of 64.
4. Without counterfactuals, rows are repeated until there are as many, so that all arms make the same number of steps.
5. The identity mask swaps whole sprites and the click. In the code it swapped single coordinates.
6. The learned mask is fitted to the same 2,000 transitions. Its threshold needs 2,000 others, which no forward model
   sees.
7. Three seeds instead of one.
"""
