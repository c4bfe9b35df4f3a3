"""Admin calls about users that authenticate with SASL/SCRAM."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from horolog.client.admin.admin_base import AdminBase, collect
from horolog.client.values.errors import check
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""By their numbers on the wire."""


@dataclass(frozen=True, slots=True)
class NewUser:
    """A password as it is sent to the broker: salted and hashed, never in clear."""

    name: str
    mechanism: str
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


class UserAdmin(AdminBase):
    async def describe_users(self, names: Iterable[str] | None = None) -> dict[str, dict[str, int]]:
        """The iterations of each user's passwords, by mechanism; of all users if none is named."""
        users = None if names is None else [UserName(name=name) for name in names]
        message = DescribeUserScramCredentialsRequest(users=users)
        response = await self._ask(message, code_of=lambda answer: int(answer.error_code))
        check(response.error_code, response.error_message)
        return collect(
            (
                one.user,
                int(one.error_code),
                one.error_message,
                {MECHANISMS.get(info.mechanism, "unknown"): info.iterations for info in one.credential_infos},
            )
            for one in response.results
        )

    async def put_users(self, users: Iterable[NewUser]) -> None:
        """Add users, or change their passwords. A request can name a user only once."""
        numbers = {name: number for number, name in MECHANISMS.items()}
        made = [
            ScramCredentialUpsertion(
                name=one.name,
                mechanism=numbers[one.mechanism],
                iterations=one.iterations,
                salt=one.salt,
                salted_password=one.salted_password,
            )
            for one in users
        ]
        await self._alter(AlterUserScramCredentialsRequest(deletions=[], upsertions=made))

    async def remove_users(self, mechanisms: Mapping[str, str]) -> None:
        """Remove the passwords of users, each by its mechanism."""
        numbers = {name: number for number, name in MECHANISMS.items()}
        gone = [ScramCredentialDeletion(name=name, mechanism=numbers[one]) for name, one in mechanisms.items()]
        await self._alter(AlterUserScramCredentialsRequest(deletions=gone, upsertions=[]))

    async def _alter(self, message: AlterUserScramCredentialsRequest) -> None:
        response = await self._ask(
            message, code_of=lambda answer: max((int(one.error_code) for one in answer.results), default=ErrorCode.NONE)
        )
        collect((one.user, int(one.error_code), one.error_message, None) for one in response.results)
