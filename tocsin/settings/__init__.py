"""Settings: one file, ``tocsin.toml``, and what may override it.

``load`` lays the sources over each other, the later winning: defaults, the settings file, environment variables
(``TOCSIN_DATA_PORT``), ``--set data.port=8801`` flags. A key nobody knows and a value that is not allowed are refused,
whichever source they come from. ``sections``, ``broker``, ``coordinator``, ``nodes`` and ``overlay`` hold every
key with its default.
"""

from tocsin.settings.broker import BrokerSettings
from tocsin.settings.coordinator import CoordinatorSettings
from tocsin.settings.loading import Resolved, load, resolve
from tocsin.settings.nodes import NodesSettings, WorkerSettings
from tocsin.settings.overlay import OverlaySettings
from tocsin.settings.sections import (
    ChannelsSettings,
    DataSettings,
    FeedsSettings,
    LakeSettings,
    LogFormat,
    LogLevel,
    LogSettings,
    RatesSettings,
    ResultsSettings,
    Settings,
    SparkSettings,
    TlsSettings,
)

__all__ = [
    "BrokerSettings",
    "ChannelsSettings",
    "CoordinatorSettings",
    "DataSettings",
    "FeedsSettings",
    "LakeSettings",
    "LogFormat",
    "LogLevel",
    "LogSettings",
    "NodesSettings",
    "OverlaySettings",
    "RatesSettings",
    "Resolved",
    "ResultsSettings",
    "Settings",
    "SparkSettings",
    "TlsSettings",
    "WorkerSettings",
    "load",
    "resolve",
]
