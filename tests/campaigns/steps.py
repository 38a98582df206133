"""A child that runs a command and, at the so-manieth step towards the disk, stops, dies, or finds the disk full.

Steps are counted, not timed: every write, sync, rename, link, unlink, folder made or removed is one. Run as
``python -m tests.campaigns.steps MODE NUMBER VERB ...`` where MODE is ``count``, ``kill``, ``full`` or ``signal``; it
prints the number of steps to the error stream at the end.
"""

import errno
import os
import signal
import sys

NAMES = ("write", "fsync", "replace", "rename", "link", "unlink", "mkdir", "rmdir")


def main():
    mode, stop, *words = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
    from counterpoint.command_line import main as command
    from counterpoint.core import engine
    from counterpoint.files import ledger, writing

    engine.CHUNK_BYTES, ledger.SECONDS, writing.CHUNK_ROWS = 0, 0, 100
    steps = 0

    def counted(name):
        function = getattr(os, name)

        def step(*arguments, **options):
            nonlocal steps
            steps += 1
            if steps == stop and mode == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if steps == stop and mode == "signal":
                os.kill(os.getpid(), signal.SIGTERM)
            if mode == "full" and steps >= stop and name in ("write", "mkdir", "link"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*arguments, **options)

        setattr(os, name, step)

    for name in NAMES:
        counted(name)
    code = command(words)
    sys.stdout.flush()
    mode = "count"
    print(f"steps {steps}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
