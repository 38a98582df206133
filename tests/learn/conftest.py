import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Networks of tests are tiny: a second thread only waits for the first."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
