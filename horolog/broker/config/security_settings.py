"""The security part of the settings table, with Kafka's names and defaults. `broker.config.settings` has the rest.

A row with `per_listener` can be given for one listener as `listener.name.<name>.KEY`, one with `per_mechanism` for one SASL mechanism
of it as well.
"""

from dataclasses import dataclass

from horolog.base.certificates import EXPIRY_WARNING_MS
from horolog.broker.base.topic_names import wrong_with
from horolog.broker.config.protection import wrong_authorizer, wrong_super_users
from horolog.broker.config.setting_types import INT64_MAX, boolean, integer, long, password, string, words

TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
STORE_TYPES = ("JKS", "PKCS12", "PEM")
CLIENT_AUTH = ("none", "requested", "required")
AUDITED = ("login", "refusal", "change")
_VALIDATORS = tuple(
    f"org.apache.kafka.common.security.oauthbearer.{name}"
    for name in ("OAuthBearerValidatorCallbackHandler", "secured.OAuthBearerValidatorCallbackHandler")
)


def _wrong_validator(text: str) -> str | None:
    return None if text in _VALIDATORS else f"expected {_VALIDATORS[0]}, for signed tokens of OAUTHBEARER"


def _wrong_audit_topic(name: str) -> str | None:
    return f"{name} is the broker's own" if name.startswith("__") else wrong_with(name)


@dataclass(frozen=True, slots=True, repr=False)
class SecuritySettings:
    # TLS
    ssl_keystore_type: str = string(
        "JKS",
        "Format of the broker's certificate and key. JKS means PKCS12 files, which Java accepts under that name; the older JKS format is not supported.",
        choices=STORE_TYPES,
        per_listener=True,
        dynamic=True,
    )
    ssl_keystore_location: str | None = string(
        None,
        "The file with the broker's certificate chain and private key.",
        nullable=True,
        per_listener=True,
        dynamic=True,
    )
    ssl_keystore_password: str | None = password("The password of that file.", per_listener=True, dynamic=True)
    ssl_keystore_certificate_chain: str | None = password(
        "The certificate chain as PEM text instead of a file, the broker's own certificate first.",
        per_listener=True,
        dynamic=True,
    )
    ssl_keystore_key: str | None = password(
        "The broker's private key as PEM text instead of a file.", per_listener=True, dynamic=True
    )
    ssl_key_password: str | None = password(
        "The password of the private key, if it has one.", per_listener=True, dynamic=True
    )
    ssl_truststore_type: str = string(
        "JKS",
        "Format of the file with the authorities that sign clients' certificates.",
        choices=STORE_TYPES,
        per_listener=True,
        dynamic=True,
    )
    ssl_truststore_location: str | None = string(
        None, "The file with these authorities.", nullable=True, per_listener=True, dynamic=True
    )
    ssl_truststore_password: str | None = password("The password of that file.", per_listener=True, dynamic=True)
    ssl_truststore_certificates: str | None = password(
        "The authorities as PEM text instead of a file.", per_listener=True, dynamic=True
    )
    ssl_client_auth: str = string(
        "none",
        "Whether clients present a certificate. A SASL_SSL listener requests one only if it has this setting of its own (listener.name.NAME.ssl.client.auth).",
        choices=CLIENT_AUTH,
        per_listener=True,
    )
    ssl_protocol: str = string(
        "TLSv1.3",
        "The newest TLS version by Java's default. Only ssl.enabled.protocols has an effect.",
        choices=("TLS", *TLS_VERSIONS),
        per_listener=True,
    )
    ssl_enabled_protocols: tuple[str, ...] = words(
        TLS_VERSIONS, "The enabled versions of TLS.", choices=TLS_VERSIONS, per_listener=True
    )
    ssl_cipher_suites: tuple[str, ...] = words(
        (),
        "The allowed cipher suites, by Java's or OpenSSL's names. Empty: those with forward secrecy.",
        per_listener=True,
    )
    ssl_principal_mapping_rules: str = string(
        "DEFAULT",
        "Rules that turn the name in a client's certificate into its principal: a comma-separated list of RULE:PATTERN/REPLACEMENT/[LU] and DEFAULT.",
        per_listener=True,
    )
    ssl_allow_dn_changes: bool = boolean(
        False,
        "Whether a certificate may be replaced by one with another subject while the broker runs.",
        per_listener=True,
    )
    ssl_allow_san_changes: bool = boolean(
        False,
        "Whether a certificate may be replaced by one without all of its alternative names.",
        per_listener=True,
    )
    horolog_ssl_handshake_max_ms: int = long(10_000, "Maximum time for the TLS handshake of a new connection.", low=1)
    horolog_ssl_handshake_max_bytes: int = integer(
        102_400, "Maximum number of bytes that a client sends in its handshake, certificates included.", low=1024
    )
    horolog_ssl_handshakes_max: int = integer(
        1000, "Maximum number of handshakes in progress on one listener. Beyond it the broker closes the oldest.", low=1
    )
    horolog_ssl_files_check_interval_ms: int = long(
        10_000, "Time between two checks for changed certificate files, which the broker then loads.", low=100
    )
    horolog_ssl_expiry_warning_ms: int = long(
        EXPIRY_WARNING_MS, "Time before the expiry of a certificate at which warnings begin.", low=0
    )

    # The HTTP port
    horolog_http_protocol: str = string(
        "HTTP",
        "The protocol of the HTTP port. HTTPS uses ssl.* as listeners do; its own keys are listener.name.http.ssl.*.",
        choices=("HTTP", "HTTPS"),
    )
    horolog_http_token: str | None = password(
        "The token that a request to the HTTP port must carry, as Authorization: Bearer TOKEN. Empty: no token is needed."
    )

    # SASL
    sasl_enabled_mechanisms: tuple[str, ...] = words(
        ("GSSAPI",), "The mechanisms with which clients can authenticate.", per_listener=True
    )
    sasl_jaas_config: str | None = password(
        "The users of a mechanism, or their source, in Kafka's JAAS format. Set it for one mechanism of one listener.",
        per_listener=True,
        per_mechanism=True,
    )
    sasl_server_max_receive_size: int = integer(
        512 * 1024, "Maximum size of a request before authentication.", low=1, per_listener=True
    )
    connections_max_reauth_ms: int = long(
        0,
        "Time after which a client must authenticate again. 0: never.",
        low=0,
        per_listener=True,
        per_mechanism=True,
    )
    connection_failed_authentication_delay_ms: int = integer(
        100, "Delay before the response to a failed login, after which the connection is closed.", low=0
    )
    horolog_failed_authentication_delay_max_ms: int = integer(
        1000,
        "Maximum of this delay for an address with repeated failures. The delay doubles with each failure.",
        low=0,
    )
    sasl_server_callback_handler_class: str | None = string(
        None,
        "Kafka's class that validates tokens. horolog validates them in the same way and accepts no other class.",
        nullable=True,
        check=_wrong_validator,
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = string(
        None,
        "The URL (https, http or file) of the keys that sign tokens.",
        nullable=True,
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = long(
        3_600_000, "Time between two reads of these keys.", low=1, per_listener=True, per_mechanism=True
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = long(
        100,
        "Time until the next attempt to read these keys after a failure. It doubles with each failure.",
        low=1,
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = long(
        10_000, "Maximum of that time.", low=1, per_listener=True, per_mechanism=True
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = words(
        (),
        "The accepted audiences; a token must name one of them. Empty: the broker accepts any audience.",
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_expected_issuer: str | None = string(
        None,
        "The issuer that a token must name. Empty: the broker accepts any issuer.",
        nullable=True,
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_scope_claim_name: str = string(
        "scope", "The claim of a token with its scopes.", per_listener=True, per_mechanism=True
    )
    sasl_oauthbearer_sub_claim_name: str = string(
        "sub", "The claim of a token with the name of the user.", per_listener=True, per_mechanism=True
    )
    sasl_oauthbearer_clock_skew_seconds: int = integer(
        30,
        "Accepted difference between the broker's clock and that of the issuer of tokens.",
        low=0,
        per_listener=True,
        per_mechanism=True,
    )

    # Between brokers over a store
    inter_broker_listener_name: str | None = string(
        None,
        "The listener that brokers over a store use for requests to each other. Empty: the one with security.inter.broker.protocol, or else the first.",
        nullable=True,
    )
    security_inter_broker_protocol: str = string(
        "PLAINTEXT",
        "The protocol, and name, of the listener between brokers; used if inter.broker.listener.name is not set.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    sasl_mechanism_inter_broker_protocol: str = string(
        "GSSAPI",
        "The mechanism with which a broker logs in to another one: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. It uses username and password of sasl.jaas.config.",
    )
    ssl_endpoint_identification_algorithm: str = string(
        "https",
        "How a broker checks the certificate of another one. https: the certificate must name its host. Empty: any name is accepted.",
        per_listener=True,
    )

    # Secrets that are kept
    password_encoder_secret: str | None = password(
        "The secret that encrypts users' keys, and passwords in settings, in horolog-cluster and horolog-journal. A systemd credential of this name works, too."
    )
    password_encoder_old_secret: str | None = password(
        "The previous secret, for rotation: the broker decrypts with it and encrypts with the new one."
    )

    # Delegation tokens
    delegation_token_secret_key: str | None = password(
        "The key for the HMACs of delegation tokens. Without it delegation tokens are off. All brokers need the same key."
    )
    delegation_token_max_lifetime_ms: int = long(
        604_800_000, "Time from the creation of a delegation token for which it can be renewed.", low=1
    )
    delegation_token_expiry_time_ms: int = long(
        86_400_000, "Time for which a delegation token is valid, unless it is renewed.", low=1
    )
    delegation_token_expiry_check_interval_ms: int = long(
        3_600_000, "Time between two checks for expired delegation tokens, which the broker then removes.", low=1
    )
    horolog_delegation_tokens_max: int = integer(
        1000,
        "Maximum number of delegation tokens that one principal may have, including expired ones that are not removed yet.",
        low=0,
        dynamic=True,
    )

    # Access lists
    authorizer_class_name: str = string(
        "",
        "The authorizer class. StandardAuthorizer, or an older name of it, turns access lists on. Empty: all clients have access to everything.",
        check=wrong_authorizer,
    )
    super_users: str = string(
        "", "Principals with access to everything, such as User:admin;User:ops.", check=wrong_super_users
    )
    allow_everyone_if_no_acl_found: bool = boolean(
        False, "Whether all clients have access to a resource without rules."
    )

    # Audit
    horolog_audit_file: str | None = string(
        None,
        "A file to which the broker appends logins, refusals and changes, one JSON object for each line.",
        nullable=True,
    )
    horolog_audit_topic: str | None = string(
        None,
        "A topic to which the broker writes the same events. It is created with the first event.",
        nullable=True,
        check=_wrong_audit_topic,
    )
    horolog_audit_events: tuple[str, ...] = words(
        AUDITED, "The kinds of audit events that are recorded.", choices=AUDITED
    )
    horolog_audit_rate_max: int = integer(
        100,
        "Maximum number of audit events of one kind per second, after the first 10000. The next event has the number of those left out.",
        low=1,
    )

    # Quotas
    quota_window_num: int = integer(
        11, "Number of windows over which rates are measured, including the current one.", low=1
    )
    quota_window_size_seconds: int = integer(1, "Length of each of these windows.", low=1)
    controller_quota_window_num: int = integer(
        11, "Number of windows over which unused controller_mutation_rate accumulates.", low=1
    )
    controller_quota_window_size_seconds: int = integer(1, "Length of each of these windows.", low=1)
    quota_producer_default: int = long(
        INT64_MAX,
        "Bytes per second for a producer's client id without a quota. Kafka had this key before 3.0.",
        low=1,
    )
    quota_consumer_default: int = long(
        INT64_MAX,
        "Bytes per second for a consumer's client id without a quota. Kafka had this key before 3.0.",
        low=1,
    )
