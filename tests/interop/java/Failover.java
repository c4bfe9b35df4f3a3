import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;

/**
 * An idempotent producer, a member of a consumer group and one of a share group, while a broker dies. Arguments: addresses, topic, partitions.
 * It prints "going" once all three are at work. For the line "killed" on standard input it prints "on" once each partition has taken a record
 * that was sent later, and both members have read one; for the line "stop", what was acknowledged, and who has not read all of it.
 */
public final class Failover {
    static final Set<Integer> ACKED = ConcurrentHashMap.newKeySet();
    static final Set<Integer> READ = ConcurrentHashMap.newKeySet();
    static final Set<Integer> SHARED = ConcurrentHashMap.newKeySet();
    static final ConcurrentLinkedQueue<String> FAULTS = new ConcurrentLinkedQueue<>();
    static volatile boolean sends = true;
    static volatile boolean reads = true;
    static volatile int sent;
    static Map<String, Object> common;

    public static void main(String[] words) throws Exception {
        int partitions = Integer.parseInt(words[2]);
        common = Map.of("bootstrap.servers", words[0]);
        try (Admin admin = Admin.create(common)) {
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "sharing");
            ConfigEntry earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
            admin.incrementalAlterConfigs(Map.of(group, List.of(new AlterConfigOp(earliest, AlterConfigOp.OpType.SET)))).all().get();
        }
        List<Thread> threads = List.of(
            begin("producer", () -> send(words[1], partitions)), begin("consumer", () -> read(words[1])), begin("sharer", () -> share(words[1])));
        await(() -> ACKED.size() > 100 && READ.size() > 50 && SHARED.size() > 50);
        System.out.println("going");
        Scanner lines = new Scanner(System.in);
        lines.nextLine();
        int since = sent;
        await(() -> !READ.stream().filter(n -> n > since).toList().isEmpty()
            && !SHARED.stream().filter(n -> n > since).toList().isEmpty()
            && ACKED.stream().filter(n -> n > since).map(n -> n % partitions).distinct().count() == partitions);
        System.out.println("on");
        lines.nextLine();
        sends = false;
        threads.get(0).join();
        await(() -> READ.containsAll(ACKED) && SHARED.containsAll(ACKED));
        reads = false;
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("acknowledged " + (ACKED.size() > since ? "all along" : ACKED.size()));
        System.out.println("not read " + ACKED.stream().filter(n -> !READ.contains(n)).toList());
        System.out.println("not shared " + ACKED.stream().filter(n -> !SHARED.contains(n)).toList());
        System.out.println("faults " + FAULTS);
    }

    interface Job {
        void run() throws Exception;
    }

    static Thread begin(String name, Job job) {
        Thread thread = new Thread(() -> {
            try {
                job.run();
            } catch (Exception error) {
                FAULTS.add(name + ": " + error);
            }
        });
        thread.start();
        return thread;
    }

    static void await(BooleanSupplier done) throws InterruptedException {
        long latest = System.nanoTime() + Duration.ofSeconds(90).toNanos();
        while (!done.getAsBoolean() && FAULTS.isEmpty() && System.nanoTime() < latest) {
            Thread.sleep(20);
        }
    }

    static Map<String, Object> with(Map<String, Object> more) {
        Map<String, Object> all = new java.util.HashMap<>(common);
        all.putAll(more);
        return all;
    }

    static void send(String topic, int partitions) throws InterruptedException {
        var settings = with(Map.of("enable.idempotence", "true", "acks", "all", "linger.ms", 0));
        try (var producer = new KafkaProducer<Integer, Integer>(settings, new IntegerSerializer(), new IntegerSerializer())) {
            while (sends) {
                int number = sent++;
                producer.send(new ProducerRecord<>(topic, number % partitions, null, number), (where, error) -> {
                    if (error == null) {
                        ACKED.add(number);
                    } else {
                        FAULTS.add("producer: " + error);
                    }
                });
                Thread.sleep(5);
            }
        }
    }

    static void read(String topic) {
        var settings = with(Map.of("group.id", "reading", "group.protocol", "consumer", "auto.offset.reset", "earliest",
            "enable.auto.commit", "false"));
        try (var consumer = new KafkaConsumer<Integer, Integer>(settings, new IntegerDeserializer(), new IntegerDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (reads) {
                var found = consumer.poll(Duration.ofMillis(100));
                found.forEach(one -> READ.add(one.value()));
                if (!found.isEmpty()) {
                    consumer.commitSync();
                }
            }
        }
    }

    static void share(String topic) {
        var settings = with(Map.of("group.id", "sharing"));
        try (var consumer = new KafkaShareConsumer<Integer, Integer>(settings, new IntegerDeserializer(), new IntegerDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (reads) {
                for (ConsumerRecord<Integer, Integer> one : consumer.poll(Duration.ofMillis(100))) {
                    SHARED.add(one.value());
                }
                consumer.commitSync(); // a failure leaves the records to be delivered again
            }
        }
    }
}
