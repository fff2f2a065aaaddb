"""The footer of a base file, from storage."""

from hoodie.formats.parquet.base_footer import BaseFooter, read_footer
from hoodie.model.files import BaseFile
from hoodie.storage.protocol import Storage


def footer_of(storage: Storage, file: BaseFile) -> BaseFooter:
    """The footer of a base file. Raises CorruptFile; FileNotFoundError when it is gone."""
    with storage.open_input(file.path, file.size) as source:
        return read_footer(source, file.path)
