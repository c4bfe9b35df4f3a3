import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Idempotent producers that send for as long as standard input is open, small batches and five of them on their way.
 * Arguments: address, topic, partitions, names of producers. For each record one line: acked NUMBER PARTITION OFFSET, or failed.
 */
final class Restarts {
    private static final int MOST_UNANSWERED = 300;
    private static final ConcurrentLinkedQueue<String> LINES = new ConcurrentLinkedQueue<>();
    private static volatile boolean ends;

    private Restarts() {}

    public static void main(String[] words) throws Exception {
        int partitions = Integer.parseInt(words[2]);
        List<Thread> threads = List.of(words).subList(3, words.length).stream()
                .map(name -> new Thread(() -> send(words[0], words[1], partitions, name)))
                .toList();
        threads.forEach(Thread::start);
        while (System.in.read() >= 0) {
            continue;
        }
        ends = true;
        for (Thread thread : threads) {
            thread.join();
        }
        LINES.forEach(System.out::println);
    }

    private static void send(String address, String topic, int partitions, String name) {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", address, "enable.idempotence", "true", "acks", "all",
                "max.in.flight.requests.per.connection", 5, "batch.size", 200, "linger.ms", 0,
                "reconnect.backoff.max.ms", 100, "retry.backoff.ms", 20);
        java.util.concurrent.Semaphore room = new java.util.concurrent.Semaphore(MOST_UNANSWERED);
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            for (int number = 0; !ends; number++) {
                String value = name + "-" + number;
                int partition = number % partitions;
                room.acquireUninterruptibly();
                producer.send(new ProducerRecord<>(topic, partition, null, value.getBytes(StandardCharsets.UTF_8)), (told, error) -> {
                    room.release();
                    LINES.add(error == null ? "acked\t" + value + "\t" + partition + "\t" + told.offset()
                            : "failed\t" + value + "\t" + partition + "\t" + error.toString().replaceAll("\\s+", " "));
                });
            }
        } catch (RuntimeException error) {
            LINES.add("died\t" + name + "\t-1\t" + error.toString().replaceAll("\\s+", " "));
        }
    }
}
