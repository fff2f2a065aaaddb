"""The two engines that may carry a Spark write or look-up: threads of the driver, or executors."""

import pytest

from support.nightly import nightly

#: Options that leave a batch to executors, however small it is.
SPREAD = {"hoodie.spark.driver.max.batch.bytes": "0"}
#: Tests of what is the same without Spark run on executors by day: the driver's threads run the code that tests
#: without Spark run.
ROUTES = pytest.mark.parametrize("route", [nightly({}, id="driver"), pytest.param(SPREAD, id="executors")])
