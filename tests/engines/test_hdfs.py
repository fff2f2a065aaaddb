"""Tables and storage on HDFS 3.4: what the tests of `make stores` hold of the older one."""

from support.reruns import rerun


def test_what_holds_of_hadoop_2_holds_of_hadoop_3(hdfs_3: str) -> None:
    rerun(["tests/stores"], {"HOODIE_TEST_HDFS": hdfs_3}, "-m", "stores", "-k", "hdfs")
