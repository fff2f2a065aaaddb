"""A handle of a table: where it is, the options of its calls, and the engine that moves its rows."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Generic

from hoodie.api.engine import Engine, Frame
from hoodie.config.datasource import check_options, overridden
from hoodie.config.driver_options import is_driver_option
from hoodie.config.options import Options as Checked
from hoodie.config.read import ReadSettings
from hoodie.config.write import missing_options
from hoodie.errors import InvalidOption
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings, without_dropping

Options = Mapping[str, Any]


class TableHandle(Generic[Frame]):
    """A table at a path. It holds no state of the table: every call looks at what is there now.

    session  of Spark; None: this process does it all
    """

    session: Any
    storage: Storage
    options: Checked
    engine: Engine[Frame]

    @cached_property
    def path(self) -> str:
        """The table's folder, or its URI."""
        return self.storage.root

    def _options(self, options: Options | None) -> Checked:
        if options is None:
            return self.options
        checked = check_options(options)
        if late := sorted(key for key in checked if is_driver_option(key)):
            raise InvalidOption(f"{', '.join(late)}: the storage is chosen when the table is opened; give it there")
        return overridden(self.options, checked)

    def _settings(self, options: Options | None) -> Settings:
        return Settings.read(self._options(options))

    def _condition_settings(self, options: Options | None) -> Settings:
        """Those of a write that says of each row what becomes of it."""
        return Settings.read(without_dropping(self._options(options)))

    def _read_settings(self, options: Options | None) -> ReadSettings:
        return ReadSettings.read(self._options(options))


def with_missing(options: Options | None, missing: str | None) -> Options | None:
    """The options of a call with what its argument `missing` says, which goes before them.

    Raises InvalidInput as `missing_options`
    """
    if missing is None or not isinstance(options, Mapping | None):
        return options
    return {**(options or {}), **missing_options(missing)}
