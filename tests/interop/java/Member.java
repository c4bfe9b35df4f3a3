import java.util.Collections;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** One member of a group on a thread of its own: reads until it is told to leave, commits, and goes. */
final class Member extends Thread {
    final Set<String> seen = ConcurrentHashMap.newKeySet();
    volatile Set<TopicPartition> assigned = Set.of();
    volatile Exception failure;
    private volatile boolean leaving;
    private final Checks checks;
    private final KafkaConsumer<byte[], byte[]> consumer;

    Member(Checks checks, KafkaConsumer<byte[], byte[]> consumer, String topic) {
        this.checks = checks;
        this.consumer = consumer;
        consumer.subscribe(Collections.singletonList(topic));
        setDaemon(true);
        start();
    }

    @Override
    public void run() {
        try {
            while (!leaving) {
                for (ConsumerRecord<byte[], byte[]> record : checks.poll(consumer, 100)) {
                    seen.add(record.partition() + ":" + record.offset());
                }
                assigned = Set.copyOf(consumer.assignment());
            }
            consumer.commitSync();
            consumer.close();
        } catch (Exception error) {
            failure = error;
        }
    }

    void leave() throws Exception {
        leaving = true;
        join(Checks.WAIT_MS);
        if (failure != null) {
            throw failure;
        }
        Report.require(!isAlive(), "the member did not leave in time");
    }
}
