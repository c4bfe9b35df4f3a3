import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consumers of share groups: acknowledgements, locks, attempts, places to begin at, isolation.
 * Arguments: address, part. The part "all" runs every check, "once" the first; "accept" and "rest" are the two halves around a
 * kill of the broker.
 */
final class Shares {
    private static final long WAIT_MS = 60_000;
    private static final long QUIET_MS = 1_500;
    private final String address;
    private final Admin admin;

    private Shares(String address) {
        this.address = address;
        this.admin = Admin.create(Map.of("bootstrap.servers", address));
    }

    public static void main(String[] words) throws Exception {
        Shares shares = new Shares(words[0]);
        switch (words[1]) {
            case "once" -> Report.check("implicit acknowledgement", shares::implicit);
            case "accept" -> Report.check("half is accepted", shares::acceptHalf);
            case "rest" -> Report.check("the rest comes again", shares::theRest);
            default -> shares.all();
        }
        shares.admin.close();
    }

    private void all() {
        Report.check("implicit acknowledgement", this::implicit);
        Report.check("explicit acknowledgement", this::explicit);
        Report.check("renewed locks", this::renew);
        Report.check("a lock that runs out", this::lockRunsOut);
        Report.check("the limit of attempts", this::limitOfAttempts);
        Report.check("two consumers of one partition", this::twoConsumers);
        Report.check("several partitions", this::severalPartitions);
        Report.check("latest", this::latest);
        Report.check("by duration", this::byDuration);
        Report.check("read committed", this::readCommitted);
    }

    // -- what the checks are made of

    private void topic(String name, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
    }

    private void configure(String group, Map<String, String> settings) throws Exception {
        Collection<AlterConfigOp> changes = new ArrayList<>();
        settings.forEach((key, value) -> changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), changes)).all().get();
    }

    private void earliest(String group) throws Exception {
        configure(group, Map.of("share.auto.offset.reset", "earliest"));
    }

    private KafkaProducer<String, String> producer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", address, "linger.ms", 0));
        settings.putAll(more);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private void produce(String topic, int partition, int from, int to) throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            for (int number = from; number < to; number++) {
                producer.send(new ProducerRecord<>(topic, partition, null, "v" + number)).get();
            }
        }
    }

    private KafkaShareConsumer<String, String> consumer(String group, String mode, String... topics) {
        KafkaShareConsumer<String, String> made = new KafkaShareConsumer<>(
                Map.of("bootstrap.servers", address, "group.id", group, "share.acknowledgement.mode", mode,
                        "fetch.max.wait.ms", 100),
                new StringDeserializer(), new StringDeserializer());
        made.subscribe(List.of(topics));
        return made;
    }

    private static void wait(String what, BooleanSupplier holds, Runnable step) {
        long end = System.currentTimeMillis() + WAIT_MS;
        while (!holds.getAsBoolean()) {
            Report.require(System.currentTimeMillis() < end, what + " took too long");
            step.run();
        }
    }

    private interface Each {
        void take(ConsumerRecord<String, String> record);
    }

    private static void poll(KafkaShareConsumer<String, String> consumer, Each each) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
            each.take(record);
        }
    }

    private static Set<String> quiet(KafkaShareConsumer<String, String> consumer) {
        Set<String> seen = new TreeSet<>();
        long end = System.currentTimeMillis() + QUIET_MS;
        while (System.currentTimeMillis() < end) {
            poll(consumer, record -> seen.add(record.value()));
        }
        return seen;
    }

    private static Set<String> values(int from, int to) {
        Set<String> all = new TreeSet<>();
        for (int number = from; number < to; number++) {
            all.add("v" + number);
        }
        return all;
    }

    // -- the checks

    private void implicit() throws Exception {
        topic("implicit", 1);
        earliest("implicit");
        produce("implicit", 0, 0, 20);
        Set<String> seen = new TreeSet<>();
        try (KafkaShareConsumer<String, String> one = consumer("implicit", "implicit", "implicit")) {
            wait("the first records", () -> seen.size() == 20, () -> poll(one, record -> seen.add(record.value())));
            one.commitSync();
        }
        Report.equal(values(0, 20), seen, "records");
        produce("implicit", 0, 20, 25);
        Set<String> more = new TreeSet<>();
        try (KafkaShareConsumer<String, String> two = consumer("implicit", "implicit", "implicit")) {
            wait("later records", () -> more.size() >= 5, () -> poll(two, record -> more.add(record.value())));
            more.addAll(quiet(two));
        }
        Report.equal(values(20, 25), more, "later records");
    }

    private void explicit() throws Exception {
        topic("explicit", 1);
        earliest("explicit");
        produce("explicit", 0, 0, 9);
        Map<String, List<Integer>> attempts = new TreeMap<>();
        try (KafkaShareConsumer<String, String> one = consumer("explicit", "explicit", "explicit")) {
            Each each = record -> {
                int number = Integer.parseInt(record.value().substring(1));
                int attempt = record.deliveryCount().get();
                attempts.computeIfAbsent(record.value(), value -> new ArrayList<>()).add(attempt);
                boolean first = attempt == 1;
                one.acknowledge(record, number % 3 == 0 ? AcknowledgeType.ACCEPT
                        : number % 3 == 1 && first ? AcknowledgeType.RELEASE
                        : number % 3 == 1 ? AcknowledgeType.ACCEPT : AcknowledgeType.REJECT);
            };
            wait("released records", () -> attempts.values().stream().mapToInt(List::size).sum() >= 12, () -> {
                poll(one, each);
                one.commitSync();
            });
            Report.equal(Set.of(), quiet(one), "records after their acknowledgement");
        }
        for (int number = 0; number < 9; number++) {
            Report.equal(number % 3 == 1 ? List.of(1, 2) : List.of(1), attempts.get("v" + number), "attempts of v" + number);
        }
    }

    private void renew() throws Exception {
        topic("renew", 1);
        configure("renew", Map.of("share.auto.offset.reset", "earliest", "share.record.lock.duration.ms", "2000"));
        produce("renew", 0, 0, 1);
        List<ConsumerRecord<String, String>> held = new ArrayList<>();
        try (KafkaShareConsumer<String, String> one = consumer("renew", "explicit", "renew");
                KafkaShareConsumer<String, String> other = consumer("renew", "explicit", "renew")) {
            wait("the record", () -> !held.isEmpty(), () -> poll(one, held::add));
            Set<String> seen = new TreeSet<>();
            long end = System.currentTimeMillis() + 4_000;
            while (System.currentTimeMillis() < end) {
                one.acknowledge(held.get(0), AcknowledgeType.RENEW);
                one.commitSync();
                List<ConsumerRecord<String, String>> again = new ArrayList<>();
                poll(one, again::add);
                if (!again.isEmpty()) {
                    held.set(0, again.get(0));
                }
                poll(other, record -> seen.add(record.value()));
            }
            Report.equal(Set.of(), seen, "records whose lock was renewed, at another consumer");
            one.acknowledge(held.get(0), AcknowledgeType.ACCEPT);
            one.commitSync();
        }
    }

    private void lockRunsOut() throws Exception {
        topic("lock", 1);
        configure("lock", Map.of("share.auto.offset.reset", "earliest", "share.record.lock.duration.ms", "1000"));
        produce("lock", 0, 0, 3);
        Set<String> first = new TreeSet<>();
        Map<String, Integer> second = new TreeMap<>();
        try (KafkaShareConsumer<String, String> one = consumer("lock", "explicit", "lock");
                KafkaShareConsumer<String, String> other = consumer("lock", "explicit", "lock")) {
            wait("the first attempt", () -> first.size() == 3, () -> poll(one, record -> first.add(record.value())));
            wait("the second attempt", () -> second.size() == 3, () -> poll(other, record -> {
                second.merge(record.value(), (int) record.deliveryCount().get(), Integer::max);
                other.acknowledge(record, AcknowledgeType.ACCEPT);
            }));
            other.commitSync();
        }
        second.forEach((value, attempt) -> Report.require(attempt >= 2, value + " was delivered in attempt " + attempt));
    }

    private void limitOfAttempts() throws Exception {
        topic("limit", 1);
        configure("limit", Map.of("share.auto.offset.reset", "earliest", "share.delivery.count.limit", "3"));
        produce("limit", 0, 0, 2);
        Map<String, List<Integer>> attempts = new TreeMap<>();
        try (KafkaShareConsumer<String, String> one = consumer("limit", "explicit", "limit")) {
            Each each = record -> {
                attempts.computeIfAbsent(record.value(), value -> new ArrayList<>()).add((int) record.deliveryCount().get());
                one.acknowledge(record, AcknowledgeType.RELEASE);
            };
            wait("three attempts", () -> attempts.values().stream().mapToInt(List::size).sum() >= 6, () -> {
                poll(one, each);
                one.commitSync();
            });
            Report.equal(Set.of(), quiet(one), "records after their last attempt");
        }
        Report.equal(Map.of("v0", List.of(1, 2, 3), "v1", List.of(1, 2, 3)), attempts, "attempts");
    }

    private void twoConsumers() throws Exception {
        topic("two", 1);
        earliest("two");
        List<String> seen = new ArrayList<>();
        try (KafkaShareConsumer<String, String> one = consumer("two", "implicit", "two");
                KafkaShareConsumer<String, String> other = consumer("two", "implicit", "two")) {
            for (int round = 0; round < 5; round++) {
                int before = round * 20;
                produce("two", 0, before, before + 20);
                wait("round " + round, () -> seen.size() >= before + 20, () -> {
                    poll(one, record -> seen.add(record.value()));
                    poll(other, record -> seen.add(record.value()));
                });
            }
        }
        Report.equal(100, seen.size(), "deliveries");
        Report.equal(values(0, 100), new TreeSet<>(seen), "records");
    }

    private void severalPartitions() throws Exception {
        topic("several", 4);
        earliest("several");
        for (int partition = 0; partition < 4; partition++) {
            produce("several", partition, partition * 10, partition * 10 + 10);
        }
        List<String> seen = new ArrayList<>();
        try (KafkaShareConsumer<String, String> one = consumer("several", "implicit", "several");
                KafkaShareConsumer<String, String> other = consumer("several", "implicit", "several")) {
            wait("all partitions", () -> seen.size() >= 40, () -> {
                poll(one, record -> seen.add(record.value()));
                poll(other, record -> seen.add(record.value()));
            });
        }
        Report.equal(40, seen.size(), "deliveries");
        Report.equal(values(0, 40), new TreeSet<>(seen), "records");
    }

    private void latest() throws Exception {
        topic("latest", 1);
        produce("latest", 0, 0, 5);
        Set<String> seen = new TreeSet<>();
        try (KafkaShareConsumer<String, String> one = consumer("latest", "implicit", "latest")) {
            int[] next = {5};
            wait("a new record", () -> !seen.isEmpty(), () -> {
                poll(one, record -> seen.add(record.value()));
                try {
                    produce("latest", 0, next[0], next[0] + 1);
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
                next[0]++;
            });
        }
        Report.require(seen.stream().noneMatch(values(0, 5)::contains), "old records were delivered: " + seen);
    }

    private void byDuration() throws Exception {
        topic("duration", 1);
        configure("duration", Map.of("share.auto.offset.reset", "by_duration:PT1H"));
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            long now = System.currentTimeMillis();
            for (int number = 0; number < 10; number++) {
                long time = now - (10 - number) * 20 * 60_000L;
                producer.send(new ProducerRecord<>("duration", 0, time, null, "v" + number)).get();
            }
        }
        Set<String> seen = new TreeSet<>();
        try (KafkaShareConsumer<String, String> one = consumer("duration", "implicit", "duration")) {
            wait("records of the last hour", () -> seen.contains("v9"), () -> poll(one, record -> seen.add(record.value())));
        }
        Report.require(!seen.contains("v6") && seen.contains("v8"), "records: " + seen);
    }

    private void readCommitted() throws Exception {
        topic("committed", 1);
        configure("committed", Map.of("share.auto.offset.reset", "earliest", "share.isolation.level", "read_committed"));
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", "shares"))) {
            producer.initTransactions();
            for (int number = 0; number < 6; number++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>("committed", 0, null, "v" + number));
                if (number % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.flush();
                    producer.abortTransaction();
                }
            }
        }
        Set<String> seen = new TreeSet<>();
        try (KafkaShareConsumer<String, String> one = consumer("committed", "implicit", "committed")) {
            wait("committed records", () -> seen.contains("v4"), () -> poll(one, record -> seen.add(record.value())));
            seen.addAll(quiet(one));
        }
        Report.equal(Set.of("v0", "v2", "v4"), seen, "records");
    }

    // -- around a kill of the broker

    private void acceptHalf() throws Exception {
        topic("killed", 1);
        configure("killed", Map.of("share.auto.offset.reset", "earliest", "share.record.lock.duration.ms", "1000"));
        produce("killed", 0, 0, 20);
        Set<String> accepted = new TreeSet<>();
        KafkaShareConsumer<String, String> one = consumer("killed", "explicit", "killed");
        wait("half of the records", () -> accepted.size() >= 10, () -> {
            poll(one, record -> {
                boolean accepts = Integer.parseInt(record.value().substring(1)) % 2 == 0;
                one.acknowledge(record, accepts ? AcknowledgeType.ACCEPT : AcknowledgeType.RELEASE);
                if (accepts) {
                    accepted.add(record.value());
                }
            });
            Report.require(one.commitSync().values().stream().noneMatch(java.util.Optional::isPresent), "not acknowledged");
        });
        Runtime.getRuntime().halt(0);
    }

    private void theRest() throws Exception {
        Set<String> seen = new TreeSet<>();
        try (KafkaShareConsumer<String, String> one = consumer("killed", "implicit", "killed")) {
            wait("the rest", () -> seen.size() >= 10, () -> poll(one, record -> seen.add(record.value())));
            seen.addAll(quiet(one));
        }
        Set<String> expected = values(0, 20);
        expected.removeIf(value -> Integer.parseInt(value.substring(1)) % 2 == 0);
        Report.equal(expected, seen, "records that were not accepted");
    }
}
