"""Campaigns tell how many attempts they made and how many survived, at the end of the run."""

import math
import os

import pytest

MUTATIONS = int(os.environ.get("CAMPAIGN", "400"))  # of each format
TIMES = MUTATIONS / 1000  # how often all else is tried, too: as each campaign says, at 1,000
APART = max(1, math.ceil(1 / TIMES))  # steps from one full disk to the next: none is left out at 1,000


@pytest.fixture
def tell(record_property):
    """Give a function that puts a line on record."""
    return lambda line: record_property("campaign", line)


def pytest_terminal_summary(terminalreporter):
    reports = [report for word in ("passed", "failed") for report in terminalreporter.getreports(word)]
    told = [value for report in reports for name, value in report.user_properties if name == "campaign"]
    if told:
        terminalreporter.section("tried and survived")
        for line in told:
            terminalreporter.write_line(line)
