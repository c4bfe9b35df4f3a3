#!/bin/sh
# Fills in what depends on how the container is run, so that a compose file written for one of Kafka's images works as it is.
set -eu

# Nobody said where to listen: on every interface, for clients on the machine that publishes the port.
if [ -z "${KAFKA_LISTENERS-}${KAFKA_ADVERTISED_LISTENERS-}${KAFKA_CFG_LISTENERS-}${KAFKA_CFG_ADVERTISED_LISTENERS-}" ]; then
    export KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092 KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
fi

# Nobody said where the data is: where a volume is mounted, be it at the place of another image.
if [ -z "${KAFKA_LOG_DIRS-}${KAFKA_LOG_DIR-}${KAFKA_CFG_LOG_DIRS-}${KAFKA_CFG_LOG_DIR-}" ]; then
    KAFKA_LOG_DIRS=/var/lib/horolog
    for folder in /tmp/kafka-logs /tmp/kraft-combined-logs /bitnami/kafka /var/lib/kafka/data; do
        if grep -q " $folder " /proc/self/mountinfo; then
            KAFKA_LOG_DIRS=$folder
            [ ! -d "$folder/data" ] || KAFKA_LOG_DIRS=$folder/data
        fi
    done
    export KAFKA_LOG_DIRS
fi

exec horolog "$@"
