# A small image: the interpreter, the locked libraries and the sources. Any image with Python >= 3.11 and pip may be the base.
ARG BASE_IMAGE=python:3.13-slim

FROM ${BASE_IMAGE} AS build
COPY requirements/store.lock /build/store.lock
RUN python3 -m venv /opt/horolog \
    && /opt/horolog/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r /build/store.lock \
    && rm -rf /opt/horolog/lib/python3*/site-packages/pip /opt/horolog/lib/python3*/site-packages/pip-* /opt/horolog/bin/pip*
COPY horolog /opt/horolog/app/horolog
COPY config/server.properties LICENSE /opt/horolog/app/
COPY config/server.properties /opt/horolog/app/horolog/broker/files/server.properties
COPY config/horolog.service /opt/horolog/app/horolog/broker/files/horolog.service
COPY config/prometheus.yml /opt/horolog/app/horolog/broker/files/prometheus.yml
COPY config/prometheus-rules.yml /opt/horolog/app/horolog/broker/files/prometheus-rules.yml
COPY config/grafana/horolog.json /opt/horolog/app/horolog/broker/files/grafana-horolog.json
COPY config/container /opt/horolog/app/container
RUN printf '#!/bin/sh\nexec /opt/horolog/bin/python -m horolog.client.cli.main "$@"\n' > /opt/horolog/bin/horolog \
    && chmod 755 /opt/horolog/bin/horolog /opt/horolog/app/container/*.sh /opt/horolog/app/container/nc.py \
    && /opt/horolog/bin/python -m compileall -q /opt/horolog/app
# The hot path, compiled: where the base has no compiler, apt-get may bring one. Without one the image runs plain Python; COMPILED=0 wants that.
ARG COMPILED=1
COPY requirements/runtime.lock requirements/compile.lock pyproject.toml /build/
COPY tools/compiled.py /build/tools/compiled.py
RUN if [ "$COMPILED" = 1 ] && { command -v cc || { apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev; }; } >/dev/null; then \
        cp -r /opt/horolog/app/horolog /build/horolog && cd /build && python3 -m venv compiling \
        && for lock in runtime compile; do \
            compiling/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r $lock.lock || exit 1; done \
        && compiling/bin/python -m tools.compiled /opt/horolog/app || exit 1; fi; \
    /opt/horolog/bin/python -c "import sys; sys.path.insert(0, '/opt/horolog/app'); \
        from horolog.protocol.records.walk import IS_COMPILED; print('the hot path is', 'compiled' if IS_COMPILED else 'plain Python')"

FROM ${BASE_IMAGE}
COPY --from=build /opt/horolog /opt/horolog
# The folders are those where Kafka's images keep their data: a new volume there belongs to the broker.
RUN groupadd --gid 1000 horolog \
    && useradd --uid 1000 --gid 1000 --no-create-home --home-dir /var/lib/horolog --shell /usr/sbin/nologin horolog \
    && install -d -m 0750 -o horolog -g horolog /var/lib/horolog /var/lib/kafka/data /bitnami/kafka \
        /tmp/kraft-combined-logs /tmp/kafka-logs
# Kafka's scripts, where its images have them, and the one use of nc that health checks make.
RUN install -d /opt/kafka/bin /opt/bitnami/kafka \
    && for name in topics configs console-producer console-consumer consumer-groups broker-api-versions; do \
        ln -s /opt/horolog/app/container/kafka-script.sh "/opt/kafka/bin/kafka-$name.sh"; \
        ln -s /opt/horolog/app/container/kafka-script.sh "/usr/bin/kafka-$name"; \
    done \
    && ln -s /opt/kafka/bin /opt/bitnami/kafka/bin \
    && ln -s /opt/horolog/app/container/nc.py /opt/kafka/bin/nc
ENV PATH=/opt/horolog/bin:$PATH:/opt/kafka/bin \
    PYTHONPATH=/opt/horolog/app \
    PYTHONUNBUFFERED=1
USER horolog
WORKDIR /var/lib/horolog
VOLUME /var/lib/horolog
EXPOSE 9092 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["/opt/horolog/bin/python", "-I", "/opt/horolog/app/container/healthcheck.py"]
ENTRYPOINT ["/opt/horolog/app/container/entrypoint.sh"]
CMD ["serve"]
