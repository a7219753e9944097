"""What in the settings is secret: it is used, and never shown."""

from __future__ import annotations

from tocsin.redaction import HIDDEN, is_secret, password, redact
from tocsin.settings.keys import literal
from tocsin.settings.sections import Settings


def show_value(dotted: str, value: object) -> str:
    """A value as the settings file has it, without what is secret: this ends up in logs and screenshots."""
    if isinstance(value, dict):
        return literal({name: HIDDEN if is_secret(name) and entry else entry for name, entry in value.items()})
    if isinstance(value, str) and value and is_secret(dotted.partition(".")[2]):
        return HIDDEN
    return redact(literal(value))


def secrets(settings: Settings) -> set[str]:
    """The secrets that a process was given by its settings."""
    extra = {value for name, value in settings.spark.extra.items() if is_secret(name)}
    urls = (settings.data.state, settings.coordinator.store, settings.broker.coordinator, settings.broker.data)
    overlay = (settings.overlay.token, settings.overlay.client_token)
    tokens = (
        settings.broker.token,
        settings.broker.data_token,
        settings.worker.token,
        settings.feeds.kafka_password,
        *overlay,
    )
    return {*tokens, *extra, *map(password, urls)} - {""}
