import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** A release whose records have no time: 0.9, the first with the consumer that groups by itself. */
final class Ancient {
    private static final long WAIT_MS = 30_000;
    private static final String BYTES = "org.apache.kafka.common.serialization.ByteArray";

    private final String address;
    private final String prefix;
    private final Plan plan;

    private Ancient(String address, String prefix, Plan plan) {
        this.address = address;
        this.prefix = prefix;
        this.plan = plan;
    }

    private void run(String check) throws Exception {
        String topic = prefix + "-" + check;
        if (check.startsWith("codec_")) {
            codec(topic, check.substring("codec_".length()));
        } else if (check.equals("group_rebalance")) {
            groupRebalance(topic);
        } else if (check.equals("group_resume")) {
            groupResume(topic);
        } else {
            throw new IllegalArgumentException("no such check: " + check);
        }
    }

    private void produce(String codec, List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", address);
        config.put("acks", "all");
        config.put("linger.ms", "20");
        config.put("compression.type", codec);
        config.put("key.serializer", BYTES + "Serializer");
        config.put("value.serializer", BYTES + "Serializer");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config)) {
            records.forEach(record -> sent.add(producer.send(record)));
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group) {
        Properties config = new Properties();
        config.put("bootstrap.servers", address);
        config.put("group.id", group);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("session.timeout.ms", "6000");
        config.put("heartbeat.interval.ms", "300");
        config.put("key.deserializer", BYTES + "Deserializer");
        config.put("value.deserializer", BYTES + "Deserializer");
        return new KafkaConsumer<>(config);
    }

    private void codec(String topic, String codec) throws Exception {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        plan.samples.forEach(sample -> records.add(new ProducerRecord<>(topic, 0, sample.key(), sample.value())));
        produce(codec, records);
        List<String> found = new ArrayList<>();
        long until = System.currentTimeMillis() + WAIT_MS;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(topic)) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            while (found.size() < records.size() && System.currentTimeMillis() < until) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(200)) {
                    found.add(record.offset() + " " + Plan.hex(record.key()) + " " + Plan.hex(record.value()));
                }
            }
        }
        Report.equal(records.size(), found.size(), "records");
        for (int at = 0; at < found.size(); at++) {
            Plan.Sample sample = plan.samples.get(at);
            Report.equal(at + " " + Plan.hex(sample.key()) + " " + Plan.hex(sample.value()), found.get(at), "record");
        }
    }

    /** A member in a thread of its own, which has to poll to stay in its group; commits what it has seen. */
    private final class One extends Thread {
        final Set<String> seen = ConcurrentHashMap.newKeySet();
        volatile Set<Integer> assigned = Set.of();
        volatile Throwable failure;
        private volatile boolean stop;
        private final String topic;

        One(String topic) {
            this.topic = topic;
            start();
        }

        @Override
        public void run() {
            try (KafkaConsumer<byte[], byte[]> consumer = consumer(topic)) {
                consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                    @Override
                    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                        consumer.commitSync();
                        assigned = Set.of();
                    }

                    @Override
                    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                        Set<Integer> numbers = new HashSet<>();
                        partitions.forEach(partition -> numbers.add(partition.partition()));
                        assigned = numbers;
                    }
                });
                while (!stop) {
                    consumer.poll(50).forEach(record -> seen.add(new String(record.value())));
                }
                consumer.commitSync();
            } catch (Throwable error) {
                failure = error;
            }
        }

        void leave() throws Exception {
            stop = true;
            join(WAIT_MS);
            Report.require(failure == null, "a member failed: " + failure);
        }
    }

    private void produceToFour(String topic, int first) throws Exception {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int number = first; number < first + 100; number++) {
            records.add(new ProducerRecord<>(topic, number % 4, null, ("value " + number).getBytes()));
        }
        produce("none", records);
    }

    private static void await(String what, BooleanSupplier held) throws Exception {
        long until = System.currentTimeMillis() + WAIT_MS;
        while (!held.getAsBoolean()) {
            Report.require(System.currentTimeMillis() < until, "never came about: " + what);
            Thread.sleep(20);
        }
    }

    private void groupRebalance(String topic) throws Exception {
        produceToFour(topic, 0);
        One first = new One(topic);
        await("one member has all partitions", () -> first.assigned.size() == 4);
        One second = new One(topic);
        await("two members share them", () -> first.assigned.size() == 2 && second.assigned.size() == 2
                && Collections.disjoint(first.assigned, second.assigned));
        produceToFour(topic, 100);
        Set<String> seen = new HashSet<>();
        await("they read everything", () -> {
            seen.addAll(first.seen);
            seen.addAll(second.seen);
            return seen.size() == 200;
        });
        second.leave();
        await("the first has all again", () -> first.assigned.size() == 4);
        first.leave();
    }

    private void groupResume(String topic) throws Exception {
        produceToFour(topic, 0);
        One before = new One(topic);
        await("the first reads everything", () -> before.seen.size() == 100);
        before.leave();
        produceToFour(topic, 100);
        One after = new One(topic);
        await("the second reads the rest", () -> after.seen.size() >= 100);
        after.leave();
        Report.equal(100, after.seen.size(), "records after the commit");
        Report.require(!after.seen.contains("value 99"), "a record was read again");
    }

    public static void main(String[] arguments) throws Exception {
        Ancient checks = new Ancient(arguments[0], arguments[1], new Plan(Path.of(arguments[2])));
        Arrays.stream(arguments).skip(3).forEach(check -> Report.check(check, () -> checks.run(check)));
        System.exit(0);
    }
}
