"""Settings: one file, ``tocsin.toml``, and what may override it.

``load`` lays the sources over each other, the later winning: defaults, the settings file, environment variables
(``TOCSIN_DATA_PORT``), ``--set data.port=8801`` flags. A key nobody knows and a value that is not allowed are refused,
whichever source they come from. ``sections`` holds every key with its default.
"""

from tocsin.settings.broker import Broker
from tocsin.settings.coordinator import Coordinator
from tocsin.settings.loading import Resolved, load, resolve
from tocsin.settings.sections import (
    Channels,
    Data,
    Feeds,
    Lake,
    Log,
    LogFormat,
    LogLevel,
    Rates,
    Results,
    Settings,
    Spark,
    Tls,
)

__all__ = [
    "Broker",
    "Channels",
    "Coordinator",
    "Data",
    "Feeds",
    "Lake",
    "Log",
    "LogFormat",
    "LogLevel",
    "Rates",
    "Resolved",
    "Results",
    "Settings",
    "Spark",
    "Tls",
    "load",
    "resolve",
]
