"""Those who report emergencies: straight to the data cluster, as authorities would."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from tocsin.client.operator import Operator
from tocsin.crowd.delays import Stopwatch
from tocsin.crowd.messages import Acknowledged, CrowdFigures, CrowdTrouble
from tocsin.crowd.plan import CrowdPlan
from tocsin.errors import TocsinError

REPORTS: Final = "reports"
# Requests under way at the same time: with more, a data cluster that answers slowly is waited for.
_AT_ONCE: Final = 8
_ANSWER_SECONDS: Final = 60


class Publishers:
    """The publishers of a plan. ``tell`` hears when reports are acknowledged, and what goes wrong."""

    def __init__(self, plan: CrowdPlan, tell: Callable[[Acknowledged | CrowdTrouble], None]) -> None:
        self._plan, self._tell = plan, tell
        self._late, self._published = Stopwatch(), 0
        self._door = asyncio.Semaphore(_AT_ONCE)

    def figures(self) -> CrowdFigures:
        """What they did."""
        return CrowdFigures(published={REPORTS: self._published}, late=self._late.delays())

    async def live(self, began: float) -> None:
        """Reports what happens, second by second; the first is at ``began`` of the machine's monotonic clock."""
        data = Operator(self._plan.data, "", self._plan.data_token, seconds=_ANSWER_SECONDS)
        async with data, asyncio.TaskGroup() as requests:
            for second, reports in enumerate(self._seconds(began)):
                due = began + second
                await asyncio.sleep(due - time.monotonic())
                if reports:
                    self._late.add(time.monotonic() - due)
                    await self._door.acquire()
                    requests.create_task(self._report(data, reports))

    def _seconds(self, began: float) -> Iterator[list[dict[str, Any]]]:
        """What is reported in each second of the clock."""
        start = datetime.now(UTC).timestamp() + began - time.monotonic()
        world = self._plan.world(datetime.fromtimestamp(round(start), UTC))
        seconds = islice(world.reports(), None if self._plan.seconds is None else round(self._plan.seconds))
        while step := list(islice(seconds, max(round(self._plan.speed), 1))):
            yield [report for reports in step for report in reports]

    async def _report(self, data: Operator, reports: list[dict[str, Any]]) -> None:
        try:
            answer = await data.publish(REPORTS, reports)
        except TocsinError as error:
            self._tell(CrowdTrouble(f"reports could not be published: {error}"))
        else:
            self._published += answer.accepted
            self._tell(Acknowledged([report["id"] for report in reports], time.monotonic()))
        finally:
            self._door.release()
