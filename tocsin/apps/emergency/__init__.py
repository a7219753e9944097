"""The emergency application of the paper: three datasets, seven channels, and a seeded city to try them in.

``APPLICATION`` is the SQL file to apply; :class:`World` makes the shelters, the moving people, the reports and the
subscribers' interests that go with it. The same seed gives the same world.
"""

from pathlib import Path

from tocsin.apps.emergency.city import City
from tocsin.apps.emergency.interests import Interest
from tocsin.apps.emergency.traces import Traces
from tocsin.apps.emergency.world import Second, World

APPLICATION = Path(__file__).with_name("app.sql")

__all__ = ["APPLICATION", "City", "Interest", "Second", "Traces", "World"]
