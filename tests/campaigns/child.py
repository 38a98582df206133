"""A process with little memory and time that tries what the campaign tells it, and says what came of it.

It reads one JSON line per attempt from its input, ``{"kind": ..., "path": ...}``, and answers with one line:
``same``, ``different``, or ``refused`` and the message. Anything else (a crash, a traceback, silence) is a failure.
"""

import faulthandler
import json
import os
import resource
import signal
import sys
import traceback

from tests.campaigns.readers import READERS, Refused

MEMORY = 6 * 2**30  # bytes of address space; importing the libraries takes half of it
SECONDS = 60  # of the processor for one attempt; the first one, which loads the libraries, may take longer
WAITING = 600  # by the clock, for an attempt that waits for something that never comes


def limits(on):
    signal.setitimer(signal.ITIMER_PROF, on * SECONDS)
    signal.alarm(on * WAITING)


def main():
    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries written in C print to the output as they please
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    expected = {}
    for line in sys.stdin:
        words = json.loads(line)
        limits(0 if words.get("first") else 1)  # end the process, which counts as a failure
        try:
            found = READERS[words["kind"]](words["path"])
            if words.get("first"):
                expected[words["path"]] = found
            answer = "same" if found == expected[words["path"]] else "different"
        except Refused as error:
            answer = f"refused {error}"
        except BaseException:
            answer = "unclear " + traceback.format_exc().replace("\n", " | ")
        limits(0)
        print(answer, file=answers, flush=True)


if __name__ == "__main__":
    main()
