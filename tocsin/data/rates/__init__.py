"""The data rate λ of each BE subscription: how many bytes per second it brings, as a moving average.

An execution's results stand for the time since the channel's last execution, so its bytes are spread evenly over that
interval, and what is averaged is the resulting step function of time, with weights that fade exponentially; the window
is the time constant. Compared with an exact sliding window this needs two numbers for each subscription instead of a
history, has no edge over which an old peak drops out at once, and, because of the spreading, gives exactly B/P for B
bytes every P seconds, for P far below the window as well as for P far above it, where a window that counts arrivals
would jump between P/window times too much and nothing.

*A subscription that is new* has been watched for less than the window; the average is over the time it was watched
(the weights of that time are scaled up to one), so it is right from its first execution on. Only for the first tenth of
the window it is scaled as if that were over, or a single early result would be the peak that averages are to avoid.

*Between executions* the average stands until the next one is due, as long after the last as that was after its
forerunner. If it does not come, the average fades as if nothing were found. So brokers, too, can go on with what they
were told last (:class:`Forecast`): they know how long it stands, and how it fades.
"""

from __future__ import annotations

from tocsin.data.rates.averages import Forecast, Rates

__all__ = ["Forecast", "Rates"]
