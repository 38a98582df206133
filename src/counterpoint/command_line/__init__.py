"""The command ``counterpoint``: one module per verb, each thin over the library.

Exit codes: 0 fine; 1 a verb that judges says no; 2 bad input, told on the error stream. Results go to the output
stream as plain text, progress to the error stream and only if that is a terminal.
"""

import argparse
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata

from counterpoint.command_line import audit, augment, convert, demo, fit_mask, inspect, report, score_mask

VERBS = (inspect, augment, report, audit, fit_mask, score_mask, convert, demo)
EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)  # what the library explains in words


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    whole = argparse.ArgumentParser(
        prog="counterpoint",
        description="Counterfactual data augmentation of reinforcement-learning data through local causal models.",
        epilog="`counterpoint VERB --help` explains a verb and shows an example.",
    )
    whole.add_argument("--version", action="version", version=metadata.version("counterpoint-rl"))
    verbs = whole.add_subparsers(metavar="VERB", required=True)
    for module in VERBS:
        name = module.__name__.rpartition(".")[2].replace("_", "-")
        about, _, rest = (module.__doc__ or "").partition("\n")
        verb = verbs.add_parser(
            name,
            help=about.rstrip(".")[:1].lower() + about.rstrip(".")[1:],
            description=about,
            epilog=rest.strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(verb)
        verb.set_defaults(run=module.run, verb=name)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    given = parser().parse_args(arguments)
    try:
        return int(given.run(given))
    except KeyboardInterrupt:
        print(f"counterpoint {given.verb}: interrupted.", file=sys.stderr)
        return 130
    except EXPECTED as error:
        print(f"counterpoint {given.verb}: {error}", file=sys.stderr)
        return 2
    except Exception:  # from a function of the user's, most likely: where it happened matters
        traceback.print_exc()
        return 2
