"""Reading and changing the settings of topics, brokers and other resources."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int8, int16, int32, string


class DescribeConfigsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    # null asks for all
    configuration_keys: list[str] | None = field(array(string), nullable="0+")


class DescribeConfigsRequest(Message, versions="0-4", flexible="4+"):
    """v1 adds synonyms and sources, v3 types and documentation."""

    resources: list[DescribeConfigsResource] = field(array(DescribeConfigsResource))
    include_synonyms: bool = field(boolean, "1+")
    include_documentation: bool = field(boolean, "3+")


class DescribeConfigsSynonym(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")
    source: int = field(int8)


class DescribeConfigsResourceResult(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")
    read_only: bool = field(boolean)
    is_default: bool = field(boolean, "0")
    config_source: int = field(int8, "1+", default=-1, ignorable=True)
    is_sensitive: bool = field(boolean)
    synonyms: list[DescribeConfigsSynonym] = field(array(DescribeConfigsSynonym), "1+", ignorable=True)
    config_type: int = field(int8, "3+", ignorable=True)
    documentation: str | None = field(string, "3+", nullable="0+", ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: list[DescribeConfigsResourceResult] = field(array(DescribeConfigsResourceResult))


class DescribeConfigsResponse(Message, versions="0-4", flexible="4+"):
    throttle_time_ms: int = field(int32)
    results: list[DescribeConfigsResult] = field(array(DescribeConfigsResult))


class AlterableConfig(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")


class AlterConfigsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: list[AlterableConfig] = field(array(AlterableConfig))


class AlterConfigsRequest(Message, versions="0-2", flexible="2+"):
    resources: list[AlterConfigsResource] = field(array(AlterConfigsResource))
    validate_only: bool = field(boolean)


class AlterConfigsResourceResponse(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    resource_type: int = field(int8)
    resource_name: str = field(string)


class AlterConfigsResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    responses: list[AlterConfigsResourceResponse] = field(array(AlterConfigsResourceResponse))


class IncrementalAlterConfigsRequestAlterableConfig(Struct):
    name: str = field(string)
    config_operation: int = field(int8)
    value: str | None = field(string, nullable="0+")


class IncrementalAlterConfigsRequestAlterConfigsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    configs: list[IncrementalAlterConfigsRequestAlterableConfig] = field(
        array(IncrementalAlterConfigsRequestAlterableConfig)
    )


class IncrementalAlterConfigsRequest(Message, versions="0-1", flexible="1+"):
    resources: list[IncrementalAlterConfigsRequestAlterConfigsResource] = field(
        array(IncrementalAlterConfigsRequestAlterConfigsResource)
    )
    validate_only: bool = field(boolean)


class IncrementalAlterConfigsResponseAlterConfigsResourceResponse(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    resource_type: int = field(int8)
    resource_name: str = field(string)


class IncrementalAlterConfigsResponse(Message, versions="0-1", flexible="1+"):
    throttle_time_ms: int = field(int32)
    responses: list[IncrementalAlterConfigsResponseAlterConfigsResourceResponse] = field(
        array(IncrementalAlterConfigsResponseAlterConfigsResourceResponse)
    )


class ListConfigResourcesRequest(Message, versions="0-1", flexible="0+"):
    """v0, which only lists client metrics resources, was called ListClientMetricsResources."""

    # empty: all that can be listed
    resource_types: list[int] = field(array(int8), "1+")


class ConfigResource(Struct):
    resource_name: str = field(string)
    resource_type: int = field(int8, "1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    config_resources: list[ConfigResource] = field(array(ConfigResource))
