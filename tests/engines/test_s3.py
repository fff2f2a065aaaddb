"""Tables and storage on a server of S3: what the ordinary suite holds of an emulator."""

from support.reruns import rerun
from support.versitygw import Versitygw

# Left out: tests that change the emulator, its page size or the headers of signed requests.
_TESTS = ("tests/contract/test_storage.py", "tests/contract/test_tables_on_s3.py", "tests/contract/test_cli_on_s3.py")


def test_what_holds_of_the_emulator_holds_of_a_server(s3_server: Versitygw) -> None:
    rerun(_TESTS, {"HOODIE_TEST_S3": s3_server.address}, "-m", "nightly or not nightly")
