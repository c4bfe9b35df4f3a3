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
    return None if text in _VALIDATORS else f"{_VALIDATORS[0]} is allowed: signed tokens, of OAUTHBEARER"


def _wrong_audit_topic(name: str) -> str | None:
    return f"{name} is the broker's own" if name.startswith("__") else wrong_with(name)


@dataclass(frozen=True, slots=True, repr=False)
class SecuritySettings:
    # TLS
    ssl_keystore_type: str = string(
        "JKS",
        "The form of the broker's certificate and key; JKS reads PKCS12 files, as Java does, and no others.",
        choices=STORE_TYPES,
        per_listener=True,
        dynamic=True,
    )
    ssl_keystore_location: str | None = string(
        None, "The file with the broker's certificate chain and key.", nullable=True, per_listener=True, dynamic=True
    )
    ssl_keystore_password: str | None = password("The password of that file.", per_listener=True, dynamic=True)
    ssl_keystore_certificate_chain: str | None = password(
        "The certificate chain as PEM text, the broker's own first, in place of a file.",
        per_listener=True,
        dynamic=True,
    )
    ssl_keystore_key: str | None = password(
        "Its private key as PEM text, in place of a file.", per_listener=True, dynamic=True
    )
    ssl_key_password: str | None = password(
        "The password of the private key, where it has one.", per_listener=True, dynamic=True
    )
    ssl_truststore_type: str = string(
        "JKS",
        "The form of the authorities that sign clients' certificates.",
        choices=STORE_TYPES,
        per_listener=True,
        dynamic=True,
    )
    ssl_truststore_location: str | None = string(
        None, "The file with these authorities.", nullable=True, per_listener=True, dynamic=True
    )
    ssl_truststore_password: str | None = password("The password of that file.", per_listener=True, dynamic=True)
    ssl_truststore_certificates: str | None = password(
        "The authorities as PEM text, in place of a file.", per_listener=True, dynamic=True
    )
    ssl_client_auth: str = string(
        "none",
        "Whether clients show a certificate; a SASL_SSL listener asks for one only where the key is its own.",
        choices=CLIENT_AUTH,
        per_listener=True,
    )
    ssl_protocol: str = string(
        "TLSv1.3",
        "The newest version that Java would use by itself; ssl.enabled.protocols decides.",
        choices=("TLS", *TLS_VERSIONS),
        per_listener=True,
    )
    ssl_enabled_protocols: tuple[str, ...] = words(
        TLS_VERSIONS, "The versions of TLS that are spoken.", choices=TLS_VERSIONS, per_listener=True
    )
    ssl_cipher_suites: tuple[str, ...] = words(
        (),
        "The allowed cipher suites, by Java's or OpenSSL's names; none: those with forward secrecy.",
        per_listener=True,
    )
    ssl_principal_mapping_rules: str = string(
        "DEFAULT",
        "How the name in a client's certificate becomes its principal: RULE:PATTERN/REPLACEMENT/[LU] and DEFAULT, with commas between.",
        per_listener=True,
    )
    ssl_allow_dn_changes: bool = boolean(
        False,
        "Whether a certificate may be replaced by one of another subject while the broker runs.",
        per_listener=True,
    )
    ssl_allow_san_changes: bool = boolean(
        False,
        "Whether it may be replaced by one that has not all of its alternative names.",
        per_listener=True,
    )
    horolog_ssl_handshake_max_ms: int = long(
        10_000, "Time within which the TLS handshake of a new connection has to be over.", low=1
    )
    horolog_ssl_handshake_max_bytes: int = integer(
        102_400, "Bytes that a client may send in its handshake, its certificates included.", low=1024
    )
    horolog_ssl_handshakes_max: int = integer(
        1000, "Handshakes of one listener under way at one time; for one more the oldest is closed.", low=1
    )
    horolog_ssl_files_check_interval_ms: int = long(
        10_000, "Time between two looks for certificate files that have changed; they are taken up then.", low=100
    )
    horolog_ssl_expiry_warning_ms: int = long(
        EXPIRY_WARNING_MS, "Time before a certificate expires from which on there are warnings of it.", low=0
    )

    # The HTTP port
    horolog_http_protocol: str = string(
        "HTTP",
        "How the HTTP port speaks; HTTPS takes ssl.* as listeners do, its own keys are listener.name.http.ssl.*.",
        choices=("HTTP", "HTTPS"),
    )
    horolog_http_token: str | None = password(
        "What a request to the HTTP port has to bring, as Authorization: Bearer TOKEN; none: everybody is answered."
    )

    # SASL
    sasl_enabled_mechanisms: tuple[str, ...] = words(
        ("GSSAPI",), "The mechanisms by which clients may authenticate.", per_listener=True
    )
    sasl_jaas_config: str | None = password(
        "The users of a mechanism, or where they are, in Kafka's form; it is given for one mechanism of one listener.",
        per_listener=True,
        per_mechanism=True,
    )
    sasl_server_max_receive_size: int = integer(
        512 * 1024, "The largest request of a client that has not authenticated.", low=1, per_listener=True
    )
    connections_max_reauth_ms: int = long(
        0,
        "Time after which a client has to authenticate anew; 0: never.",
        low=0,
        per_listener=True,
        per_mechanism=True,
    )
    connection_failed_authentication_delay_ms: int = integer(
        100, "Delay before the response to a failed login, after which the connection is closed.", low=0
    )
    horolog_failed_authentication_delay_max_ms: int = integer(
        1000,
        "The maximum of this delay for an address whose logins keep failing: it doubles with each failure.",
        low=0,
    )
    sasl_server_callback_handler_class: str | None = string(
        None,
        "Kafka's class that checks tokens: it is checked here as that does, and no other may be given.",
        nullable=True,
        check=_wrong_validator,
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = string(
        None,
        "Where the keys are by which tokens are signed: a URL of https, http or file.",
        nullable=True,
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = long(
        3_600_000, "Time between two reads of these keys.", low=1, per_listener=True, per_mechanism=True
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = long(
        100, "Time before the next look where one failed; it doubles.", low=1, per_listener=True, per_mechanism=True
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = long(
        10_000, "The longest that this becomes.", low=1, per_listener=True, per_mechanism=True
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = words(
        (),
        "The audiences, one of which a token must name; none: the broker accepts any audience.",
        per_listener=True,
        per_mechanism=True,
    )
    sasl_oauthbearer_expected_issuer: str | None = string(
        None, "The issuer that a token names; none: any.", nullable=True, per_listener=True, per_mechanism=True
    )
    sasl_oauthbearer_scope_claim_name: str = string(
        "scope", "The claim of a token that has its scopes.", per_listener=True, per_mechanism=True
    )
    sasl_oauthbearer_sub_claim_name: str = string(
        "sub", "The claim of a token that has the name of the user.", per_listener=True, per_mechanism=True
    )
    sasl_oauthbearer_clock_skew_seconds: int = integer(
        30,
        "By so much the clocks of the broker and of who signs tokens may differ.",
        low=0,
        per_listener=True,
        per_mechanism=True,
    )

    # Between brokers over a store
    inter_broker_listener_name: str | None = string(
        None,
        "The listener at which the brokers of a store ask each other; none: that of security.inter.broker.protocol, else the first.",
        nullable=True,
    )
    security_inter_broker_protocol: str = string(
        "PLAINTEXT",
        "The protocol, and name, of the listener between brokers where inter.broker.listener.name is not given.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    sasl_mechanism_inter_broker_protocol: str = string(
        "GSSAPI",
        "The mechanism by which a broker logs in at another: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, as username and password of"
        " sasl.jaas.config say.",
    )
    ssl_endpoint_identification_algorithm: str = string(
        "https",
        "Whether the certificate of another broker has to name its host: https; empty: it need not.",
        per_listener=True,
    )

    # Secrets that are kept
    password_encoder_secret: str | None = password(
        "The secret that encrypts users' keys and passwords among the settings in horolog-cluster and horolog-journal;"
        " a systemd credential of this name works too."
    )
    password_encoder_old_secret: str | None = password(
        "The previous secret, to rotate it: the broker decrypts with it and encrypts with the new one."
    )

    # Delegation tokens
    delegation_token_secret_key: str | None = password(
        "The key from which the HMACs of delegation tokens are made; without it there are none. All brokers need the same one."
    )
    delegation_token_max_lifetime_ms: int = long(
        604_800_000, "How long a delegation token can be renewed, from when it was made.", low=1
    )
    delegation_token_expiry_time_ms: int = long(
        86_400_000, "How long a delegation token is valid unless it is renewed.", low=1
    )
    delegation_token_expiry_check_interval_ms: int = long(
        3_600_000, "How often delegation tokens that have expired are removed.", low=1
    )
    horolog_delegation_tokens_max: int = integer(
        1000, "How many delegation tokens one principal may have made that are not removed yet.", low=0, dynamic=True
    )

    # Access lists
    authorizer_class_name: str = string(
        "",
        "The class that decides what a principal may do: StandardAuthorizer, or an older name of it, means access lists;"
        " empty: everybody may do everything.",
        check=wrong_authorizer,
    )
    super_users: str = string(
        "", "Principals that may do everything, such as User:admin;User:ops.", check=wrong_super_users
    )
    allow_everyone_if_no_acl_found: bool = boolean(
        False, "Whether everybody may do everything with a resource that no rule is about."
    )

    # Audit
    horolog_audit_file: str | None = string(
        None, "A file to which logins, refusals and changes are appended, one JSON object a line.", nullable=True
    )
    horolog_audit_topic: str | None = string(
        None,
        "A topic to which the same events are written; it is made when the first comes.",
        nullable=True,
        check=_wrong_audit_topic,
    )
    horolog_audit_events: tuple[str, ...] = words(AUDITED, "The kinds of events that are recorded.", choices=AUDITED)
    horolog_audit_rate_max: int = integer(
        100,
        "Events of one kind recorded per second, after the first 10000; the next one counts those left out.",
        low=1,
    )

    # Quotas
    quota_window_num: int = integer(11, "Windows over which rates are measured, the last of them unfinished.", low=1)
    quota_window_size_seconds: int = integer(1, "How long each of these windows is.", low=1)
    controller_quota_window_num: int = integer(
        11, "Windows in which a rest of all that controller_mutation_rate allows is kept.", low=1
    )
    controller_quota_window_size_seconds: int = integer(1, "How long each of these windows is.", low=1)
    quota_producer_default: int = long(
        INT64_MAX,
        "Bytes in a second for a producer's client id that has no quota; Kafka had this key before 3.0.",
        low=1,
    )
    quota_consumer_default: int = long(
        INT64_MAX,
        "Bytes in a second for a consumer's client id that has no quota; Kafka had this key before 3.0.",
        low=1,
    )
