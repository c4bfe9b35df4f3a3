import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import kafka.api.FetchRequestBuilder;
import kafka.api.PartitionOffsetRequestInfo;
import kafka.cluster.Broker;
import kafka.common.TopicAndPartition;
import kafka.javaapi.FetchResponse;
import kafka.javaapi.OffsetRequest;
import kafka.javaapi.OffsetResponse;
import kafka.javaapi.TopicMetadataRequest;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.javaapi.producer.Producer;
import kafka.message.MessageAndOffset;
import kafka.producer.KeyedMessage;
import kafka.producer.ProducerConfig;

/** The Scala producer and SimpleConsumer of 0.8.2, which speak Produce, Fetch, Metadata and ListOffsets v0 only. */
final class Scala08 {
    private static final int WAIT_MS = 30_000;
    private static final int FETCH_BYTES = 1 << 20;

    private final String host;
    private final int port;
    private final String prefix;
    private final Plan plan;

    private Scala08(String address, String prefix, Plan plan) {
        this.host = address.substring(0, address.lastIndexOf(':'));
        this.port = Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
        this.prefix = prefix;
        this.plan = plan;
    }

    private void run(String check) throws Exception {
        String topic = prefix + "-" + check;
        if (!check.startsWith("codec_")) {
            throw new IllegalArgumentException("no such check: " + check);
        }
        produce(topic, check.substring("codec_".length()));
        List<String> found = read(topic);
        List<Plan.Sample> expected = written();
        Report.equal(expected.size(), found.size(), "records");
        for (int at = 0; at < found.size(); at++) {
            Plan.Sample sample = expected.get(at);
            Report.equal(at + " " + Plan.hex(sample.key()) + " " + Plan.hex(sample.value()), found.get(at), "record");
        }
    }

    /** This producer takes a message without a key for one that may go to any partition, and there is one only. */
    private List<Plan.Sample> written() {
        return plan.samples;
    }

    private void produce(String topic, String codec) {
        Properties config = new Properties();
        config.put("metadata.broker.list", host + ":" + port);
        config.put("request.required.acks", "-1");
        config.put("producer.type", "sync");
        config.put("compression.codec", codec);
        Producer<byte[], byte[]> producer = new Producer<>(new ProducerConfig(config));
        List<KeyedMessage<byte[], byte[]>> messages = new ArrayList<>();
        written().forEach(sample -> messages.add(new KeyedMessage<>(topic, sample.key(), sample.value())));
        producer.send(messages);
        producer.close();
    }

    private List<String> read(String topic) {
        Broker leader = leader(topic);
        SimpleConsumer consumer = consumer(leader.host(), leader.port());
        long end = offset(consumer, topic, -1);
        long next = offset(consumer, topic, -2);
        List<String> found = new ArrayList<>();
        long until = System.currentTimeMillis() + WAIT_MS;
        while (next < end && System.currentTimeMillis() < until) {
            FetchResponse response = consumer.fetch(new FetchRequestBuilder().clientId("horolog")
                    .addFetch(topic, 0, next, FETCH_BYTES).build());
            Report.require(!response.hasError(), "error " + response.errorCode(topic, 0));
            for (MessageAndOffset one : response.messageSet(topic, 0)) {
                if (one.offset() >= next) {
                    found.add(one.offset() + " " + hex(one.message().key()) + " " + hex(one.message().payload()));
                    next = one.nextOffset();
                }
            }
        }
        consumer.close();
        return found;
    }

    /** This consumer does not look for leaders: whoever uses it does. */
    private Broker leader(String topic) {
        SimpleConsumer asker = consumer(host, port);
        try {
            return asker.send(new TopicMetadataRequest(List.of(topic))).topicsMetadata().get(0)
                    .partitionsMetadata().get(0).leader();
        } finally {
            asker.close();
        }
    }

    private static SimpleConsumer consumer(String host, int port) {
        return new SimpleConsumer(host, port, WAIT_MS, FETCH_BYTES, "horolog");
    }

    private static long offset(SimpleConsumer consumer, String topic, long time) {
        TopicAndPartition place = new TopicAndPartition(topic, 0);
        OffsetResponse response = consumer.getOffsetsBefore(
                new OffsetRequest(Map.of(place, new PartitionOffsetRequestInfo(time, 1)), (short) 0, "horolog"));
        Report.require(!response.hasError(), "error " + response.errorCode(topic, 0));
        return response.offsets(topic, 0)[0];
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return Plan.hex(null);
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return Plan.hex(bytes);
    }

    public static void main(String[] arguments) throws Exception {
        Scala08 checks = new Scala08(arguments[0], arguments[1], new Plan(Path.of(arguments[2])));
        Arrays.stream(arguments).skip(3).forEach(check -> Report.check(check, () -> checks.run(check)));
        System.exit(0);
    }
}
