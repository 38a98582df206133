"""One self-contained HTML page that answers "can I trust this data?"; needs the extra ``report``.

Statistics are plain NumPy (``graphs``, ``coverage``, ``distributions``, ``provenance``, ``examples``), gathered by
``facts`` and weighed by ``verdict``; ``figures`` draws, the sections write, ``page`` puts all together.

Example:
    >>> import tempfile
    >>> import numpy as np
    >>> from counterpoint import Augmenter, Factorization, Transitions
    >>> from counterpoint.masks import Constant
    >>> rng = np.random.default_rng(0)
    >>> factors = Factorization.blocks(state={"left": 2, "right": 2}, action={"push": 1})
    >>> s, a, s2 = rng.random((50, 4)), rng.random((50, 1)), rng.random((50, 4))
    >>> data = Transitions(s, a, s2[:, 0], s2, np.zeros(50, bool))
    >>> mask = Constant.edges(factors, [("push", "left")])
    >>> augmenter = Augmenter(factors, mask, lambda s, a, s2: s2[:, 0])
    >>> made = augmenter.fill(data, 200, rng=rng)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(f"{folder}/report.html", data, made, augmenter, rng=rng)
    ...     page.read_text().startswith("<!doctype html>")
    True
"""

from counterpoint.report.options import DrawFn, Extras, Judgement, Reliability
from counterpoint.report.page import write_report

__all__ = ["DrawFn", "Extras", "Judgement", "Reliability", "write_report"]
