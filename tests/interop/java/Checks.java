import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The checks that every release from 0.10.2 on can do; what differs between releases is abstract. Topics are made beforehand. */
abstract class Checks {
    static final long WAIT_MS = 30_000;
    private static final long TWO_DAYS_MS = 172_800_000;

    final String address;
    final String prefix;
    final Plan plan;

    Checks(String address, String prefix, Plan plan) {
        this.address = address;
        this.prefix = prefix;
        this.plan = plan;
    }

    abstract ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long waitMs);

    abstract ProducerRecord<byte[], byte[]> record(String topic, Plan.Sample sample);

    abstract String text(ConsumerRecord<byte[], byte[]> record);

    abstract boolean hasHeaders();

    void run(String check) throws Exception {
        if (check.startsWith("codec_")) {
            codec(check);
            return;
        }
        switch (check) {
            case "offsets_by_time" -> offsetsByTime(topic(check));
            case "log_append_time" -> logAppendTime(topic(check));
            case "too_old_refused" -> tooOldRefused(topic(check));
            case "group_rebalance" -> groupRebalance(topic(check), Map.of());
            case "group_resume" -> groupResume(topic(check), Map.of());
            default -> throw new IllegalArgumentException("no such check: " + check);
        }
    }

    String topic(String check) {
        return prefix + "-" + check;
    }

    KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", address);
        config.put("linger.ms", 20);
        config.put("acks", "all");
        config.put("max.block.ms", WAIT_MS);
        config.putAll(more);
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", address);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.putAll(more);
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    List<RecordMetadata> produce(Map<String, Object> config, List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        List<RecordMetadata> reports = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(config)) {
            records.forEach(record -> sent.add(producer.send(record)));
            producer.flush();
            for (Future<RecordMetadata> one : sent) {
                reports.add(one.get());
            }
        }
        return reports;
    }

    List<ProducerRecord<byte[], byte[]>> samples(String topic) {
        return plan.samples.stream().map(sample -> record(topic, sample)).toList();
    }

    /** Everything in partition 0, up to the end that this consumer sees. */
    List<ConsumerRecord<byte[], byte[]>> read(String topic, Map<String, Object> config) {
        TopicPartition partition = new TopicPartition(topic, 0);
        List<TopicPartition> only = List.of(partition);
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(config)) {
            consumer.assign(only);
            consumer.seekToBeginning(only);
            long end = consumer.endOffsets(only).get(partition);
            long until = System.currentTimeMillis() + WAIT_MS;
            while (consumer.position(partition) < end && System.currentTimeMillis() < until) {
                poll(consumer, 200).forEach(records::add);
            }
            Report.equal(end, consumer.position(partition), "position at the end");
        }
        return records;
    }

    void sameAsSamples(String topic) {
        List<String> expected = plan.samples.stream().map(sample -> sample.text(hasHeaders())).toList();
        List<String> found = read(topic, Map.of()).stream().map(this::text).toList();
        Report.equal(expected.size(), found.size(), "records");
        for (int at = 0; at < expected.size(); at++) {
            Report.equal(expected.get(at), found.get(at), "record " + at);
        }
    }

    private void codec(String check) throws Exception {
        List<RecordMetadata> reports =
                produce(Map.of("compression.type", check.substring("codec_".length())), samples(topic(check)));
        for (int at = 0; at < reports.size(); at++) {
            Report.equal((long) at, reports.get(at).offset(), "offset told to the producer");
            Report.equal(plan.samples.get(at).timestamp(), reports.get(at).timestamp(), "time told to the producer");
        }
        sameAsSamples(topic(check));
    }

    private void offsetsByTime(String topic) throws Exception {
        produce(Map.of(), samples(topic));
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            for (Plan.LookUp lookUp : plan.lookUps) {
                OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, lookUp.timestamp())).get(partition);
                Report.equal(lookUp.offset(), found == null ? -1L : found.offset(), "offset at " + lookUp.timestamp());
                if (found != null) {
                    long timestamp = plan.samples.get((int) found.offset()).timestamp();
                    Report.equal(timestamp, found.timestamp(), "time of offset " + found.offset());
                }
            }
        }
    }

    private void logAppendTime(String topic) throws Exception {
        long before = System.currentTimeMillis();
        for (RecordMetadata report : produce(Map.of(), samples(topic).subList(0, 10))) {
            Report.require(report.timestamp() >= before, "the producer was told " + report.timestamp());
        }
        List<ConsumerRecord<byte[], byte[]>> records = read(topic, Map.of());
        Report.equal(10, records.size(), "records");
        for (ConsumerRecord<byte[], byte[]> record : records) {
            Report.equal(TimestampType.LOG_APPEND_TIME, record.timestampType(), "type of the time");
            long timestamp = record.timestamp();
            Report.require(before <= timestamp && timestamp <= System.currentTimeMillis(), "append time " + timestamp);
        }
    }

    private void tooOldRefused(String topic) throws Exception {
        long now = System.currentTimeMillis();
        try {
            produce(Map.of(), List.of(new ProducerRecord<>(topic, 0, now - TWO_DAYS_MS, null, new byte[1])));
            throw new AssertionError("a record of two days ago was taken");
        } catch (ExecutionException error) {
            Report.require(error.getCause() instanceof InvalidTimestampException, "another error: " + error.getCause());
        }
        produce(Map.of(), List.of(new ProducerRecord<>(topic, 0, now, null, new byte[1])));
        Report.equal(1, read(topic, Map.of()).size(), "records");
    }

    Member member(String topic, Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("group.id", topic);
        config.put("enable.auto.commit", "true");
        return new Member(this, consumer(config), topic);
    }

    void produceToFour(String topic, int count) throws Exception {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            records.add(new ProducerRecord<>(topic, number % 4, null, null, ("value " + number).getBytes()));
        }
        produce(Map.of(), records);
    }

    static void await(String what, BooleanSupplier held, Supplier<Object> state) throws InterruptedException {
        long until = System.currentTimeMillis() + WAIT_MS;
        while (!held.getAsBoolean()) {
            Report.require(System.currentTimeMillis() < until, "never came about: " + what + "; " + state.get());
            Thread.sleep(20);
        }
    }

    void groupRebalance(String topic, Map<String, Object> config) throws Exception {
        produceToFour(topic, 100);
        Member first = member(topic, config);
        Supplier<Object> one = () -> first.assigned + " " + first.seen.size() + " " + first.failure;
        await("one member has all partitions", () -> first.assigned.size() == 4, one);
        Member second = member(topic, config);
        Supplier<Object> both = () -> one.get() + " and " + second.assigned + " " + second.failure;
        await("two members share them", () -> first.assigned.size() == 2 && second.assigned.size() == 2
                && Collections.disjoint(first.assigned, second.assigned), both);
        produceToFour(topic, 100);
        Set<String> seen = new HashSet<>();
        await("they read everything", () -> {
            seen.addAll(first.seen);
            seen.addAll(second.seen);
            return seen.size() == 200;
        }, () -> seen.size());
        second.leave();
        await("the first has all again", () -> first.assigned.size() == 4, one);
        first.leave();
    }

    void groupResume(String topic, Map<String, Object> config) throws Exception {
        produceToFour(topic, 100);
        Member before = member(topic, config);
        await("the first reads everything", () -> before.seen.size() == 100, () -> before.seen.size() + " " + before.failure);
        before.leave();
        produceToFour(topic, 40);
        Member after = member(topic, config);
        await("the second reads the rest", () -> after.seen.size() >= 40, () -> after.seen.size() + " " + after.failure);
        after.leave();
        Report.equal(40, after.seen.size(), "records that the second read");
        Report.require(Collections.disjoint(before.seen, after.seen), "records were read twice");
    }
}
