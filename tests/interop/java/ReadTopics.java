import java.lang.reflect.Method;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** Reads topics from their start and prints each record, as tests/interop/python/read_topics.py does: ADDRESS COUNT TOPIC... */
public final class ReadTopics {
    private static final long PATIENCE_MS = 15_000;

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[1]);
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", arguments[0]);
        config.put("enable.auto.commit", "false");
        config.put("group.id", "reader");
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        config.put("key.deserializer", bytes);
        config.put("value.deserializer", bytes);
        StringBuilder said = new StringBuilder();
        for (int at = 2; at < arguments.length; at++) {
            TopicPartition place = new TopicPartition(arguments[at], 0);
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config)) {
                assign(consumer, place);
                consumer.seek(place, 0);
                int got = 0;
                long deadline = System.currentTimeMillis() + PATIENCE_MS;
                while (got < count && System.currentTimeMillis() < deadline) {
                    for (ConsumerRecord<byte[], byte[]> one : poll(consumer)) {
                        show(said, one);
                        got++;
                    }
                }
            } catch (Exception error) {
                System.err.println(arguments[at] + " " + error);
            }
        }
        System.out.print(said);
    }

    /** The parameter is a list in 0.9 and a collection since. */
    private static void assign(KafkaConsumer<byte[], byte[]> consumer, TopicPartition place) throws Exception {
        for (Method one : KafkaConsumer.class.getMethods()) {
            if (one.getName().equals("assign")) {
                one.invoke(consumer, Collections.singletonList(place));
                return;
            }
        }
    }

    /** Its parameter is a number up to 3.x and a duration since 2.0. */
    @SuppressWarnings("unchecked")
    private static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
        for (Method one : KafkaConsumer.class.getMethods()) {
            if (one.getName().equals("poll") && one.getParameterTypes()[0] == java.time.Duration.class) {
                return (ConsumerRecords<byte[], byte[]>) one.invoke(consumer, java.time.Duration.ofMillis(200));
            }
        }
        Method old = KafkaConsumer.class.getMethod("poll", long.class);
        return (ConsumerRecords<byte[], byte[]>) old.invoke(consumer, 200L);
    }

    /** Since 0.10 a record has a time. */
    private static void show(StringBuilder said, ConsumerRecord<byte[], byte[]> one) throws Exception {
        long timestamp = -1;
        int type = 0;
        try {
            timestamp = (Long) ConsumerRecord.class.getMethod("timestamp").invoke(one);
            type = ConsumerRecord.class.getMethod("timestampType").invoke(one).toString().equals("LogAppendTime") ? 1 : 0;
        } catch (NoSuchMethodException before) {
            timestamp = -1;
        }
        said.append(one.topic()).append('\t').append(one.offset()).append('\t').append(type).append('\t').append(timestamp);
        said.append('\t').append(hex(one.key())).append('\t').append(hex(one.value())).append('\n');
    }

    private static String hex(byte[] data) {
        if (data == null) {
            return "-";
        }
        StringBuilder digits = new StringBuilder();
        for (byte one : data) {
            digits.append(String.format("%02x", one));
        }
        return digits.toString();
    }
}
