import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads a partition from the start as a client of a rack: BROKERS RACK TOPIC PAUSE COUNT. It waits for a line after PAUSE records. */
final class RackReader {
    private RackReader() {}

    public static void main(String[] arguments) throws Exception {
        int pause = Integer.parseInt(arguments[3]), count = Integer.parseInt(arguments[4]);
        TopicPartition place = new TopicPartition(arguments[2], 0);
        Map<String, Object> settings =
                Map.of(
                        "bootstrap.servers", arguments[0],
                        "client.rack", arguments[1],
                        "max.partition.fetch.bytes", 100_000,
                        "max.poll.records", 200);
        long next = 0;
        boolean paused = false;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            while (next < count) {
                if (!paused && next >= pause) {
                    paused = true;
                    System.out.println("some");
                    lines.readLine();
                }
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(500))) {
                    if (one.offset() != next || Long.parseLong(new String(one.value())) != next) {
                        System.out.println("offset " + one.offset() + " instead of " + next);
                        System.exit(1);
                    }
                    next++;
                }
            }
        }
        System.out.println("all in order");
    }
}
