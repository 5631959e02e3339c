"""What the tests of the studio's page share: `pytest_plugins = "studio_page"`, a reader, the service, a browser."""

import pytest

from studio import chromium, opener, served, small_reader


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return small_reader(tmp_path_factory)


@pytest.fixture(scope="module")
def address(reader):
    with served(lambda: reader) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def opened(browser, address):
    with opener(browser, address) as opened:
        yield opened
