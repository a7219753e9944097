"""How we make ourselves known to Kafka, and it to us, in the words of its C client and of Spark's connector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from tocsin.errors import SettingsError
from tocsin.settings import FeedsSettings

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True)
class KafkaAccess:
    """Security as Kafka calls it; with TLS the authority's file, or empty for the system's; with SASL who we are."""

    security: str = "plaintext"
    ca: str = ""
    mechanism: str = "SCRAM-SHA-512"
    user: str = ""
    password: str = ""

    @classmethod
    def of(cls, settings: FeedsSettings) -> Self:
        """As the settings say; raises SettingsError if something is missing."""
        made = cls(
            settings.kafka_security,
            settings.kafka_ca,
            settings.kafka_mechanism,
            settings.kafka_user,
            settings.kafka_password,
        )
        if made._is_known and not (made.user and made.password):
            raise SettingsError(
                f'feeds.kafka_security = "{made.security}" needs feeds.kafka_user and feeds.kafka_password'
            )
        return made

    def client(self) -> dict[str, str]:
        """For clients of our own."""
        found = {"security.protocol": self.security}
        if self._is_encrypted and self.ca:
            found["ssl.ca.location"] = self.ca
        if self._is_known:
            found |= {"sasl.mechanism": self.mechanism, "sasl.username": self.user, "sasl.password": self.password}
        return found

    def spark(self) -> dict[str, str]:
        """As options of Spark's connector."""
        found = {"security.protocol": self.security.upper()}
        if self._is_encrypted and self.ca:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca}
        if self._is_known:
            login = (
                f"{_MODULES[self.mechanism]} required username={_quote(self.user)} password={_quote(self.password)};"
            )
            found |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": login}
        return {f"kafka.{name}": value for name, value in found.items()}

    @property
    def _is_encrypted(self) -> bool:
        return self.security.endswith("ssl")

    @property
    def _is_known(self) -> bool:
        return self.security.startswith("sasl")


OPEN: Final = KafkaAccess()


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
