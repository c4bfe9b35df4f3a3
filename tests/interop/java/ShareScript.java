import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
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

/** One part of a script for share groups: prints a line for each step, with the records as value:deliveries. */
public class ShareScript {
    static String address;
    static String topic;
    static String group;

    public static void main(String[] arguments) throws Exception {
        address = arguments[0];
        topic = "shares-" + arguments[2];
        group = "group-" + arguments[2];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            if (!arguments[1].equals("after")) {
                admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
                configure(admin, group, "share.auto.offset.reset", "earliest");
            }
            switch (arguments[1]) {
                case "implicit" -> implicit();
                case "explicit" -> explicit(admin);
                case "locks" -> locks(admin);
                case "resets" -> resets(admin);
                case "committed" -> committed(admin);
                case "strict" -> strict();
                case "two" -> two();
                case "before" -> before();
                case "after" -> after();
                default -> throw new IllegalArgumentException(arguments[1]);
            }
        }
    }

    static void implicit() throws Exception {
        put(0, 10, null, true);
        try (var consumer = consumer(group, Map.of())) {
            say("first", poll(consumer, 10, 20_000));
            consumer.poll(Duration.ofMillis(200));
            say("committed", consumer.commitSync());
            put(10, 5, null, true);
            say("second", poll(consumer, 5, 10_000));
        }
        try (var consumer = consumer(group, Map.of())) {
            put(15, 2, null, true);
            say("released", poll(consumer, 7, 20_000));
        }
    }

    static void explicit(Admin admin) throws Exception {
        configure(admin, group, "share.delivery.count.limit", "3");
        put(0, 6, null, true);
        var types = List.of(AcknowledgeType.ACCEPT, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.RELEASE,
            AcknowledgeType.REJECT, AcknowledgeType.RELEASE);
        try (var consumer = consumer(group, Map.of("share.acknowledgement.mode", "explicit"))) {
            for (int round = 0; round < 5; round++) {
                var records = poll(consumer, 1, round == 0 ? 20_000 : 4_000);
                records.forEach(one -> consumer.acknowledge(one, types.get(number(one))));
                say("round", records);
                consumer.commitSync();
            }
        }
    }

    /**
     * Two records are locked; one lock is renewed, so that this record comes again later than the other, and after the first lock's end.
     *
     * <p>The records arrive between two calls of poll. If they arrived during one, the consumer could fetch once more, and goes on until
     * it gets a record: it would then take the one that it has released before the other consumer can.
     */
    static void locks(Admin admin) throws Exception {
        configure(admin, group, "share.record.lock.duration.ms", "15000");
        var explicit = Map.of("share.acknowledgement.mode", "explicit");
        try (var first = consumer(group, explicit); var second = consumer(group, Map.of())) {
            first.poll(Duration.ofMillis(300));
            put(0, 2, null, true);
            Thread.sleep(5_000);
            var records = poll(first, 2, 60_000);
            long locked = System.currentTimeMillis();
            say("locked", records);
            Thread.sleep(5_000);
            first.acknowledge(records.get(0), AcknowledgeType.RENEW);
            first.acknowledge(records.get(1), AcknowledgeType.RELEASE);
            say("renewed", first.commitSync().values());
            var came = new ArrayList<>(poll(second, 1, 60_000));
            long released = came.size() == 1 ? number(came.get(0)) : 1;
            came.addAll(poll(second, 2 - came.size(), 60_000));
            long expired = System.currentTimeMillis() - locked;
            came.sort(Comparator.comparing(ConsumerRecord::offset));
            say("again", came);
            say("the released one first", released == 1);
            say("the renewed lock lasted longer", expired > 17_000);
            first.poll(Duration.ofMillis(300)).forEach(one -> first.acknowledge(one, AcknowledgeType.ACCEPT));
            say("late", names(first.commitSync().values()));
        }
    }

    static void resets(Admin admin) throws Exception {
        put(0, 3, null, true);
        for (String reset : List.of("earliest", "latest", "by_duration:PT1H")) {
            String own = group + reset.charAt(0);
            configure(admin, own, "share.auto.offset.reset", reset);
            try (var consumer = consumer(own, Map.of())) {
                boolean isLatest = reset.equals("latest");
                say(reset, poll(consumer, 3, isLatest ? 6_000 : 15_000));
                if (isLatest) {
                    put(3, 1, null, true);
                    say("later", poll(consumer, 1, 10_000));
                }
            }
        }
    }

    static void committed(Admin admin) throws Exception {
        configure(admin, group, "share.isolation.level", "read_committed");
        put(0, 2, topic, true);
        put(2, 2, topic, false);
        put(4, 2, null, true);
        try (var consumer = consumer(group, Map.of())) {
            say("committed", poll(consumer, 4, 20_000));
        }
    }

    static void strict() throws Exception {
        put(0, 20, null, true);
        try (var consumer = consumer(group, Map.of("max.poll.records", "3", "share.acquire.mode", "record_limit"))) {
            for (int round = 0; round < 3; round++) {
                say("round", poll(consumer, 1, 20_000));
            }
        }
    }

    static void two() throws Exception {
        for (int n = 0; n < 40; n++) {
            put(n * 5, 5, null, true);
        }
        var counts = new ConcurrentHashMap<String, Integer>();
        var threads = new ArrayList<Thread>();
        for (int n = 0; n < 2; n++) {
            threads.add(new Thread(() -> {
                try (var consumer = consumer(group, Map.of("max.poll.records", "10"))) {
                    long end = System.currentTimeMillis() + 30_000;
                    while (counts.size() < 200 && System.currentTimeMillis() < end) {
                        consumer.poll(Duration.ofMillis(200)).forEach(one -> counts.merge(one.value(), 1, Integer::sum));
                    }
                    consumer.commitSync();
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        say("records", counts.size());
        say("twice", counts.values().stream().filter(count -> count > 1).count());
    }

    static void before() throws Exception {
        put(0, 6, null, true);
        var consumer = consumer(group, Map.of("share.acknowledgement.mode", "explicit"));
        var records = poll(consumer, 6, 20_000);
        say("locked", records);
        records.forEach(one -> consumer.acknowledge(one, number(one) < 3 ? AcknowledgeType.ACCEPT : AcknowledgeType.RELEASE));
        say("written", consumer.commitSync().values());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void after() {
        try (var consumer = consumer(group, Map.of())) {
            say("again", poll(consumer, 3, 40_000));
            say("more", poll(consumer, 1, 2_000));
        }
    }

    static KafkaShareConsumer<String, String> consumer(String group, Map<String, String> more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("group.id", group);
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.putAll(more);
        var consumer = new KafkaShareConsumer<String, String>(settings);
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    static void configure(Admin admin, String group, String key, String value) throws Exception {
        var change = new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), List.of(change))).all().get();
    }

    static void put(int from, int count, String transaction, boolean commits) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("linger.ms", "50");
        if (transaction != null) {
            settings.put("transactional.id", transaction);
        }
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            if (transaction != null) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            for (int n = from; n < from + count; n++) {
                producer.send(new ProducerRecord<>(topic, 0, null, "" + n));
            }
            producer.flush();
            if (transaction != null && commits) {
                producer.commitTransaction();
            } else if (transaction != null) {
                producer.abortTransaction();
            }
        }
    }

    static List<ConsumerRecord<String, String>> poll(KafkaShareConsumer<String, String> consumer, int count, int waitMs) {
        var records = new ArrayList<ConsumerRecord<String, String>>();
        long end = System.currentTimeMillis() + waitMs;
        while (records.size() < count && System.currentTimeMillis() < end) {
            consumer.poll(Duration.ofMillis(300)).forEach(records::add);
        }
        return records;
    }

    static int number(ConsumerRecord<String, String> record) {
        return Integer.parseInt(record.value());
    }

    static List<String> names(Iterable<? extends Optional<? extends Exception>> outcomes) {
        var names = new ArrayList<String>();
        outcomes.forEach(one -> names.add(one.isPresent() ? one.get().getClass().getSimpleName() : "done"));
        return names;
    }

    static void say(String step, Object outcome) {
        System.out.println(step + " " + outcome);
    }

    static void say(String step, List<ConsumerRecord<String, String>> records) {
        var shown = new StringBuilder(step);
        records.forEach(one -> shown.append(' ').append(one.value()).append(':').append(one.deliveryCount().orElse((short) 0)));
        System.out.println(shown);
    }
}
