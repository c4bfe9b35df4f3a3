#!/bin/sh
# Fills in what depends on how the container is run, so that a compose file written for one of Kafka's images works as it is.
set -eu

# A compose file may run a shell, or one of Kafka's scripts, instead of the broker.
case ${1-} in
*/* | sh | bash | kafka-*) exec "$@" ;;
esac

DEFAULT_CONFIG=/opt/horolog/app/server.properties

# `serve` without --config reads the file that is mounted where Kafka's images look for it, else the image's own.
config=$DEFAULT_CONFIG
for file in /bitnami/kafka/config/server.properties /mnt/shared/config/server.properties; do
    [ ! -f "$file" ] || config=$file
done
if [ "${1-}" = serve ]; then
    given=no
    for word in "$@"; do
        case $word in --config | --config=*) given=yes ;; esac
    done
    if [ $given = no ]; then
        shift
        set -- serve --config "$config" "$@"
    fi
fi

in_file() { # in_file KEY...: whether the file sets one of them
    for key in "$@"; do
        ! grep -Eq "^[[:space:]]*$(printf %s "$key" | sed 's/\./\\./g')[[:space:]]*[=:]" "$config" || return 0
    done
    return 1
}

# Kafka 0.10's way to say it. Platforms set KAFKA_PORT to a URL for a service named kafka, which says nothing.
old=${KAFKA_HOST_NAME-}${KAFKA_ADVERTISED_HOST_NAME-}${KAFKA_ADVERTISED_PORT-}
case ${KAFKA_PORT-} in *://*) ;; *) old=$old${KAFKA_PORT-} ;; esac

# Nobody said where to listen: on every interface, for clients on the machine that publishes the port.
if [ -z "$old${KAFKA_LISTENERS-}${KAFKA_ADVERTISED_LISTENERS-}${KAFKA_CFG_LISTENERS-}${KAFKA_CFG_ADVERTISED_LISTENERS-}" ] &&
    ! in_file listeners advertised.listeners port host.name advertised.host.name advertised.port; then
    export KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092 KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
fi

# Nobody said where the data is: where a volume is mounted, be it at the place of another image.
if [ -z "${KAFKA_LOG_DIRS-}${KAFKA_LOG_DIR-}${KAFKA_CFG_LOG_DIRS-}${KAFKA_CFG_LOG_DIR-}" ] && ! in_file log.dirs log.dir; then
    KAFKA_LOG_DIRS=/var/lib/horolog
    for folder in /tmp/kafka-logs /tmp/kraft-combined-logs /bitnami/kafka /var/lib/kafka/data; do
        if grep -q " $folder " /proc/self/mountinfo; then
            KAFKA_LOG_DIRS=$folder
            [ ! -d "$folder/data" ] || KAFKA_LOG_DIRS=$folder/data
        fi
    done
    export KAFKA_LOG_DIRS
fi

# Without an address for metrics and health: on every interface if there is a token, else on loopback, for the health check.
[ -n "${KAFKA_HOROLOG_HTTP_TOKEN-}" ] || unset KAFKA_HOROLOG_HTTP_TOKEN
if [ -z "${KAFKA_HOROLOG_HTTP_LISTEN+given}${KAFKA_CFG_HOROLOG_HTTP_LISTEN+given}" ]; then
    KAFKA_HOROLOG_HTTP_LISTEN=127.0.0.1:9464
    if [ -n "${KAFKA_HOROLOG_HTTP_TOKEN-}${KAFKA_CFG_HOROLOG_HTTP_TOKEN-}" ] || in_file horolog.http.token; then
        KAFKA_HOROLOG_HTTP_LISTEN=0.0.0.0:9464
    fi
    export KAFKA_HOROLOG_HTTP_LISTEN
fi

exec horolog "$@"
