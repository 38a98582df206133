import pytest

from tests.report.reading import world_data


@pytest.fixture(scope="session")
def sprites():
    return world_data()
