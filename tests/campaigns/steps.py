"""Disturbing a command at the so-manieth step of its way: killed, stopped, out of disk, or told to others.

Progress is counted, not timed. A step is a write, sync, rename, link or removal, a file opened to be written (before
and after), a folder made or removed, or an array handed to HDF5, which writes by itself. A signal may come anywhere,
so for that every call of a function is a step.
"""

import builtins
import errno
import io
import os
import resource
import signal
import sys

NAMES = ("write", "fsync", "replace", "rename", "link", "unlink", "mkdir", "rmdir")
REFUSED = ("write", "mkdir", "link", "open")  # by a full disk


class Steps:
    """Counts the steps of this process, and does what the mode says at number ``stop``.

    Args:
        mode: ``count``; ``kill``; ``full``, the disk is from there on; ``limit``, files have so many bytes at most;
            ``calls`` counts calls of functions; ``SIGINT`` or ``SIGTERM`` comes at such a call.
        stop: the number, or None.
        told: called once at that number.
    """

    def __init__(self, mode, stop, told=None):
        self.mode, self.stop, self.told, self.count, self.begun = mode, stop, told, 0, False
        if mode in ("calls", "SIGINT", "SIGTERM"):
            sys.setprofile(self.called)
            return
        if mode == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (stop, stop))
        import h5py

        for owner, name in [*((os, name) for name in NAMES), (h5py.Group, "create_dataset")]:
            setattr(owner, name, self.counted(name, getattr(owner, name)))
        builtins.open = io.open = self.opened(open)

    def counted(self, name, function):
        def step(*arguments, **options):
            self.step(name)
            return function(*arguments, **options)

        return step

    def opened(self, function):
        def step(file, mode="r", *arguments, **options):
            writes = set(mode) & set("wxa+")
            if writes:
                self.step("open")
            found = function(file, mode, *arguments, **options)
            if writes:
                self.step("opened")
            return found

        return step

    def step(self, name):
        self.count += 1
        if self.count == self.stop and self.told is not None:
            self.told()
        if self.count == self.stop and self.mode == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.mode == "full" and self.count >= self.stop and name in REFUSED:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def called(self, frame, event, _):
        if event in ("call", "c_call") and self.watched():
            self.count += 1
            if self.count == self.stop:
                sys.setprofile(None)
                os.kill(os.getpid(), getattr(signal, self.mode))

    def watched(self):
        """Say whether the command watches for signals yet; before that, nothing has begun."""
        self.begun = self.begun or callable(signal.getsignal(signal.SIGTERM))
        return self.begun

    def end(self):
        sys.setprofile(None)
        self.mode = "count"
