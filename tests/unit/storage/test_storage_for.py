import os

import pytest

from hoodie.errors import InvalidInput, InvalidOption
from hoodie.storage import FsspecStorage, LocalStorage, WrappedStorage, fsspec_store, storage_beside, storage_for


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("/data/t", "/data/t"),
        ("/data/t/", "/data/t"),
        ("t", os.path.abspath("t")),
        ("file:///data/a%20b", "/data/a%20b"),
        ("file:/data/t", "/data/t"),
        ("file://localhost/data/t", "/data/t"),
        ("FILE:///data/x#y?z", "/data/x#y?z"),
        ("/data/a:b/c://d", "/data/a:b/c:/d"),
    ],
)
def test_paths_and_file_uris_are_local(given, root):
    storage = storage_for(given)
    assert isinstance(storage, LocalStorage)
    assert storage.root == root


def test_a_path_object_is_local(tmp_path):
    assert storage_for(tmp_path).root == str(tmp_path)


def test_other_schemes_go_through_fsspec_and_keep_their_uri():
    storage = storage_for("memory://bucket/t/")
    assert isinstance(storage, FsspecStorage)
    assert storage.root == "memory://bucket/t"
    storage.write("f", b"1")
    assert storage_for("memory://bucket").read("t/f") == b"1"


def test_an_unknown_scheme_names_itself():
    with pytest.raises(InvalidOption, match=r"nosuch://bucket/t.*nosuch"):
        storage_for("nosuch://bucket/t")


@pytest.mark.parametrize("uri", ["s3://", "s3:///t", "gs://", "abfss:///t"])
def test_an_object_store_without_a_bucket_is_refused(uri):
    with pytest.raises(InvalidInput, match=r"no bucket is named; expected \w+://bucket/path"):
        storage_for(uri)


@pytest.mark.parametrize("problem", [ImportError("no module"), ValueError("Protocol not known: abfss")])
@pytest.mark.parametrize(
    ("uri", "extra"),
    [
        ("s3://b/t", "s3"),
        ("s3a://b/t", "s3"),
        ("gs://b/t", "gcs"),
        ("abfs://c/t", "azure"),
        ("abfss://c@account.dfs.core.windows.net/t", "azure"),
    ],
)
def test_a_driver_that_is_not_installed_is_named_with_the_command_that_installs_it(monkeypatch, uri, extra, problem):
    """Of some schemes, as abfss, fsspec knows only once their driver is installed."""

    def missing(url, **options):
        raise problem

    monkeypatch.setattr(fsspec_store, "url_to_fs", missing)
    with pytest.raises(InvalidOption, match=rf"not installed: pip install 'hoodie\[{extra}\]'$"):
        storage_for(uri)


def test_a_chained_url_is_refused():
    with pytest.raises(InvalidOption, match="chained"):
        storage_for("simplecache::memory://bucket/t")


def test_a_file_uri_of_another_host_is_refused():
    with pytest.raises(InvalidInput, match="another host"):
        storage_for("file://server/share/t")


def test_a_uri_without_slashes_is_no_local_folder():
    with pytest.raises(InvalidInput, match="expected hdfs://"):
        storage_for("hdfs:/data/t")


def test_options_are_not_shown():
    assert "secret" not in repr(storage_for("memory://b/t", {"token": "secret"}))


def test_an_option_of_hoodie_is_no_option_of_the_driver():
    with pytest.raises(InvalidOption, match=r"hoodie\.index\.type: no option of a storage driver") as raised:
        storage_for("memory://b/t", {"hoodie.index.type": "hush-hush"})
    assert "hush-hush" not in str(raised.value)


def test_an_error_of_the_driver_does_not_show_the_values_of_its_options(monkeypatch):
    def refuses(url, **options):
        raise ValueError(f"cannot connect with {options['secret']} and {options['client_kwargs']['token']}")

    monkeypatch.setattr(fsspec_store, "url_to_fs", refuses)
    with pytest.raises(InvalidOption, match=r"cannot connect with \*\*\* and \*\*\*") as raised:
        storage_for("memory://b/t", {"secret": "hush-hush", "client_kwargs": {"token": "hush-too"}})
    assert raised.value.__suppress_context__  # a traceback does not show the driver's own error


def test_a_path_beside_a_table_is_reached_with_the_options_of_its_driver():
    table = WrappedStorage(storage_for("memory://b/t", {"token": "secret"}))
    same, other = storage_beside(table, "memory://locks/x"), storage_beside(table, "/tmp/locks")
    assert isinstance(same, FsspecStorage)
    assert same.options_for("memory://locks/x") == {"token": "secret"}
    assert isinstance(other, LocalStorage)
    assert same.options_for("s3://bucket/x") == {}
