"""The library speaks of arguments; whoever writes a description speaks of its sections. From the one to the other."""

import re

WORDS = (
    (r"Give terminal_fn\(state, action, next_state\) -> bool \(B,\)", "Add a section [terminal] to the description"),
    (r"so a function that recomputes them after a swap is needed: derive\(state\) -> \(B, derived\)",
     "so say how to recompute them: derived = { columns, function }, or plus and minus"),
    (r"a section \[noise\] in a description, Factorization\(noise=\.\.\.\) in Python", "write a section [noise]"),
    (r"write noise = false in a description, or give scan\(\.\.\.\)\.without\('noise'\)", "write noise = false"),
    (r"in Factorization\(noise=\.\.\.\)", "in a section [noise]"),
    (r"\bterminal_fn\b", "[terminal]"),
    (r"\breward_fn\b", "[reward]"),
    (r"\bmask_fn\b", "[mask]"),
    (r"^derive:", "derived:"),
    (r"(?s)(: it differs from the data in .*)$",
     r"\1 Correct it; or, if these are not a function of the row, skip this check: --trust-reward."),
)  # fmt: skip


def described(message: str) -> str:
    """Say in the words of a description what the library said of an argument.

    >>> described("reward_fn: returned NaN")
    '[reward]: returned NaN'
    """
    for pattern, words in WORDS:
        message = re.sub(pattern, words, message)
    return message
