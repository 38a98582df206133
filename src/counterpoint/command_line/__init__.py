"""The command ``counterpoint``: one module per verb, each thin over the library.

Exit codes: 0 fine; 1 a verb that judges says no; 2 bad input, explained on the error stream; 130 and 143 stopped by
Ctrl-C or SIGTERM. Results go to the output stream as plain text. Progress goes to the error stream: a bar if that is a
terminal, otherwise one line for each stage.
"""

import argparse
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module, metadata
from pathlib import Path

from counterpoint.command_line import process
from counterpoint.command_line.stopping import Stopped, Watch
from counterpoint.command_line.wording import described

VERBS = ("inspect", "augment", "report", "audit", "fit-mask", "score-mask", "convert", "demo")
EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)  # what the library explains in words
PACKAGE = str(Path(__file__).parents[1])


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the whole command line, or of one verb: the others are then not loaded, only named."""
    whole = argparse.ArgumentParser(
        prog="counterpoint",
        description="Counterfactual data augmentation of reinforcement-learning data through local causal models.",
        epilog="`counterpoint VERB --help` explains a verb and shows an example.",
    )
    whole.add_argument("--version", action="version", version=metadata.version("counterpoint-rl"))
    verbs = whole.add_subparsers(metavar="VERB", required=True)
    for name in VERBS:
        if only in VERBS and name != only:
            verbs.add_parser(name)
            continue
        module = import_module(f"counterpoint.command_line.{name.replace('-', '_')}")
        about, _, rest = (module.__doc__ or "").partition("\n")
        verb = verbs.add_parser(
            name,
            help=about.rstrip(".")[:1].lower() + about.rstrip(".")[1:],
            description=about,
            epilog=rest.strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(verb)
        verb.set_defaults(run=module.run, verb=name, go_on=getattr(module, "go_on", None))
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; without ``arguments``, those that the process was started with."""
    given, watch = argparse.Namespace(verb="", go_on=None), Watch()
    if arguments is None:
        process.begin()
    try:
        watch.begin()
        code = _explained_run(arguments, given)
        watch.end()
        return code
    except (KeyboardInterrupt, Stopped):
        return _stopped(given, watch)
    except Exception:
        if watch.signal is not None:
            return _stopped(given, watch)
        traceback.print_exc()  # from a function of the user's, most likely: where it happened matters
        return 2
    finally:
        if arguments is not None:
            watch.restore()
        else:
            process.end()


def _explained_run(arguments: Sequence[str] | None, given: argparse.Namespace) -> int:
    """Run a verb; what the library explains becomes one line."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    parser(words[0] if words else None).parse_args(words, given)
    given.command = shlex.join(["counterpoint", *words])
    try:
        code = int(given.run(given))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read the output has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return 0
    except EXPECTED as error:
        if isinstance(error, TypeError) and not _explained(error):
            raise
        message = described(str(error)) if getattr(given, "description", None) else str(error)
        print(f"counterpoint {given.verb}: {message}", file=sys.stderr)
        return 2
    except SystemExit as error:
        traceback.print_exc()
        print(f"counterpoint {given.verb}: a function ended the program (SystemExit {error.code}).", file=sys.stderr)
        return 2


def _explained(error: BaseException) -> bool:
    """Say whether an error was raised by this package, which explains what it refuses."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is None or trace.tb_frame.f_code.co_filename.startswith(PACKAGE)


def _stopped(given: argparse.Namespace, watch: Watch) -> int:
    hint = given.go_on(given) if given.go_on is not None else "Run the same command again."
    print(f"{' '.join(['counterpoint', given.verb]).strip()}: stopped. {hint}", file=sys.stderr)
    return watch.code
