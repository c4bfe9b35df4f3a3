"""DescribeClientQuotas and AlterClientQuotas: limits per user, client id and address."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, float64, int8, int16, int32, string


class ComponentData(Struct):
    entity_type: str = field(string)
    match_type: int = field(int8)
    match: str | None = field(string, nullable="0+")


class DescribeClientQuotasRequest(Message, versions="0-1", flexible="1+"):
    components: list[ComponentData] = field(array(ComponentData))
    strict: bool = field(boolean)


class EntityData(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable="0+")


class ValueData(Struct):
    key: str = field(string)
    value: float = field(float64)


class EntryData(Struct):
    entity: list[EntityData] = field(array(EntityData))
    values: list[ValueData] = field(array(ValueData))


class DescribeClientQuotasResponse(Message, versions="0-1", flexible="1+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    entries: list[EntryData] | None = field(array(EntryData), nullable="0+")


class AlterClientQuotasRequestEntityData(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable="0+")


class OpData(Struct):
    key: str = field(string)
    value: float = field(float64)
    remove: bool = field(boolean)


class AlterClientQuotasRequestEntryData(Struct):
    entity: list[AlterClientQuotasRequestEntityData] = field(array(AlterClientQuotasRequestEntityData))
    ops: list[OpData] = field(array(OpData))


class AlterClientQuotasRequest(Message, versions="0-1", flexible="1+"):
    entries: list[AlterClientQuotasRequestEntryData] = field(array(AlterClientQuotasRequestEntryData))
    validate_only: bool = field(boolean)


class AlterClientQuotasResponseEntityData(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable="0+")


class AlterClientQuotasResponseEntryData(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    entity: list[AlterClientQuotasResponseEntityData] = field(array(AlterClientQuotasResponseEntityData))


class AlterClientQuotasResponse(Message, versions="0-1", flexible="1+"):
    throttle_time_ms: int = field(int32)
    entries: list[AlterClientQuotasResponseEntryData] = field(array(AlterClientQuotasResponseEntryData))
