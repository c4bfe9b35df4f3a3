import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.internals.RecordHeader;

/** Releases with headers, idempotence, transactions and an admin class: 2.8 and everything later. */
final class Modern extends Checks {
    private static final Map<String, Object> CONSUMER_PROTOCOL = Map.of("group.protocol", "consumer");

    private Modern(String address, String prefix, Plan plan) {
        super(address, prefix, plan);
    }

    @Override
    ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long waitMs) {
        return consumer.poll(Duration.ofMillis(waitMs));
    }

    @Override
    ProducerRecord<byte[], byte[]> record(String topic, Plan.Sample sample) {
        ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(topic, 0, sample.timestamp(), sample.key(), sample.value());
        for (String header : sample.headers().split(",")) {
            String[] parts = header.split("=", -1);
            record.headers().add(new RecordHeader(parts[0], Plan.bytes(parts[1])));
        }
        return record;
    }

    @Override
    String text(ConsumerRecord<byte[], byte[]> record) {
        List<String> headers = new ArrayList<>();
        record.headers().forEach(header -> headers.add(header.key() + "=" + Plan.hex(header.value())));
        return new Plan.Sample(record.timestamp(), record.key(), record.value(), String.join(",", headers)).text(true);
    }

    @Override
    boolean hasHeaders() {
        return true;
    }

    @Override
    void run(String check) throws Exception {
        switch (check) {
            case "idempotent" -> idempotent(topic(check));
            case "transactions" -> transactions(topic(check));
            case "transaction_offsets" -> transactionOffsets(topic(check));
            case "max_timestamp" -> maxTimestamp(topic(check));
            case "admin_topics" -> adminTopics(topic(check));
            case "admin_groups" -> adminGroups(topic(check));
            case "group_protocol_consumer" -> groupRebalance(topic(check), CONSUMER_PROTOCOL);
            case "resume_protocol_consumer" -> groupResume(topic(check), CONSUMER_PROTOCOL);
            default -> super.run(check);
        }
    }

    private Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", address, "default.api.timeout.ms", (int) WAIT_MS));
    }

    private void idempotent(String topic) throws Exception {
        produce(Map.of("enable.idempotence", "true", "linger.ms", 0, "batch.size", 200), samples(topic));
        sameAsSamples(topic);
    }

    private void send(KafkaProducer<byte[], byte[]> producer, String topic) {
        for (Plan.Sample sample : plan.samples.subList(0, 50)) {
            producer.send(record(topic, sample));
        }
    }

    private void transactions(String topic) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("transactional.id", topic))) {
            producer.initTransactions();
            for (boolean commit : new boolean[] {true, false, true}) {
                producer.beginTransaction();
                send(producer, topic);
                producer.flush();
                if (commit) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        Report.equal(100, read(topic, Map.of("isolation.level", "read_committed")).size(), "read_committed");
        Report.equal(150, read(topic, Map.of("isolation.level", "read_uncommitted")).size(), "read_uncommitted");
    }

    /** Offsets in a transaction: the committed ones count, the aborted ones do not. */
    private void transactionOffsets(String topic) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("transactional.id", topic));
                KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of("group.id", topic))) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, topic);
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(7, "seven")), consumer.groupMetadata());
            producer.commitTransaction();
            producer.beginTransaction();
            send(producer, topic);
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(40)), consumer.groupMetadata());
            producer.abortTransaction();
            OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
            Report.require(committed != null, "no committed offset");
            Report.equal(7L, committed.offset(), "committed offset");
            Report.equal("seven", committed.metadata(), "metadata");
        }
    }

    private void maxTimestamp(String topic) throws Exception {
        produce(Map.of(), samples(topic));
        TopicPartition partition = new TopicPartition(topic, 0);
        OffsetSpec spec = (OffsetSpec) OffsetSpec.class.getMethod("maxTimestamp").invoke(null); // since 3.0
        try (Admin admin = admin()) {
            ListOffsetsResult.ListOffsetsResultInfo found =
                    admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
            long largest = plan.samples.stream().mapToLong(Plan.Sample::timestamp).max().orElseThrow();
            Report.equal(largest, found.timestamp(), "largest time");
            Report.equal(largest, plan.samples.get((int) found.offset()).timestamp(), "time of its offset");
        }
    }

    @SuppressWarnings("unchecked")
    private TopicDescription describe(Admin admin, String topic) throws Exception {
        Object result = admin.describeTopics(List.of(topic));
        String getter = Arrays.stream(result.getClass().getMethods()).anyMatch(one -> one.getName().equals("topicNameValues"))
                ? "topicNameValues" : "values"; // renamed in 3.1
        Object futures = result.getClass().getMethod(getter).invoke(result);
        return ((Map<String, KafkaFuture<TopicDescription>>) futures).get(topic).get();
    }

    private String config(Admin admin, ConfigResource resource, String key) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(key).value();
    }

    private void adminTopics(String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (Admin admin = admin()) {
            NewTopic wanted = new NewTopic(topic, 2, (short) 1).configs(Map.of("retention.ms", "123456"));
            admin.createTopics(List.of(wanted)).all().get();
            await("the topic has two partitions", () -> partitions(admin, topic) == 2, () -> partitions(admin, topic));
            Report.equal("123456", config(admin, resource, "retention.ms"), "retention.ms");
            AlterConfigOp change = new AlterConfigOp(new ConfigEntry("retention.ms", "654321"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
            await("retention.ms is changed", () -> "654321".equals(quietConfig(admin, resource)), () -> resource);
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
            await("the topic has three partitions", () -> partitions(admin, topic) == 3, () -> partitions(admin, topic));
            Report.equal(Report.BROKERS, admin.describeCluster().nodes().get().size(), "nodes");
            Report.require(admin.listTopics().names().get().contains(topic), "the topic is not listed");
            admin.deleteTopics(List.of(topic)).all().get();
            await("the topic is gone", () -> partitions(admin, topic) == -1, () -> partitions(admin, topic));
        }
    }

    private int partitions(Admin admin, String topic) {
        try {
            return describe(admin, topic).partitions().size();
        } catch (Exception notThere) {
            return -1;
        }
    }

    private String quietConfig(Admin admin, ConfigResource resource) {
        try {
            return config(admin, resource, "retention.ms");
        } catch (Exception notThere) {
            return null;
        }
    }

    @SuppressWarnings("deprecation")
    private void adminGroups(String topic) throws Exception {
        produceToFour(topic, 40);
        Member member = member(topic, Map.of());
        try (Admin admin = admin()) {
            await("the member reads everything", () -> member.seen.size() == 40, () -> member.seen.size());
            Set<String> listed = admin.listConsumerGroups().all().get().stream()
                    .map(group -> group.groupId()).collect(Collectors.toCollection(TreeSet::new));
            Report.require(listed.contains(topic), "not listed: " + listed);
            var described = admin.describeConsumerGroups(List.of(topic)).all().get().get(topic);
            Report.equal("Stable", described.state().toString(), "state");
            Report.equal(4, described.members().iterator().next().assignment().topicPartitions().size(), "assigned");
            member.leave();
            TopicPartition partition = new TopicPartition(topic, 1);
            Map<TopicPartition, OffsetAndMetadata> offsets =
                    admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get();
            Report.equal(4, offsets.size(), "partitions with offsets");
            Report.equal(10L, offsets.get(partition).offset(), "committed offset");
            admin.alterConsumerGroupOffsets(topic, Map.of(partition, new OffsetAndMetadata(3))).all().get();
            Report.equal(3L, admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get().get(partition)
                    .offset(), "changed offset");
            admin.deleteConsumerGroupOffsets(topic, Set.of(partition)).all().get();
            Report.require(admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get().get(partition) == null,
                    "a deleted offset is still there");
            admin.deleteConsumerGroups(List.of(topic)).all().get();
            Report.require(admin.listConsumerGroups().all().get().stream().noneMatch(group -> group.groupId().equals(topic)),
                    "a deleted group is still listed");
        }
    }

    public static void main(String[] arguments) throws Exception {
        Checks checks = new Modern(arguments[0], arguments[1], new Plan(Path.of(arguments[2])));
        Arrays.stream(arguments).skip(3).forEach(check -> Report.check(check, () -> checks.run(check)));
        System.exit(0);
    }
}
