"""Where and with what something was measured: processor, commit and versions, for rows and tables alike."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

LIBRARIES = ("counterpoint-rl", "numpy", "numba", "torch", "stable-baselines3", "gymnasium", "mujoco")


def describe() -> str:
    """Return one line about commit, machine and versions, to print above a table."""
    found = ", ".join(f"{name} {version}" for name, version in versions().items())
    return f"commit {commit()}, {machine()}, {found}"


def machine() -> str:
    """Return the processor, how many cores it has, and the system."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results depend on; "none" for a missing one."""
    return {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}}


def commit() -> str:
    """Return the commit, with ``+`` if the working copy differs from it by more than results."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603, S607

    changed = git("status", "--porcelain", ":/", ":!results")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.processor())
