import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.StreamsGroupDescription;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.HostInfo;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/** Applications of the streams group protocol: ADDRESS FOLDER PART; one line of JSON for each check. */
final class StreamsGroups {
    private static final String STORE = "counts";
    private static final int PARTITIONS = 3;
    private final String address;
    private final Path folder;
    private final Admin admin;
    private final Producer<String, String> producer;
    private final List<KafkaStreams> running = new ArrayList<>();

    private StreamsGroups(String address, Path folder) {
        this.address = address;
        this.folder = folder;
        this.admin = Admin.create(Map.of("bootstrap.servers", address));
        this.producer = new KafkaProducer<>(Map.of("bootstrap.servers", address), new StringSerializer(), new StringSerializer());
    }

    public static void main(String[] words) throws Exception {
        StreamsGroups all = new StreamsGroups(words[0], Path.of(words[1]));
        if (words[2].equals("once")) {
            Report.check("words", () -> all.words("words", StreamsConfig.AT_LEAST_ONCE));
        } else {
            Report.check("words", () -> all.words("words", StreamsConfig.AT_LEAST_ONCE));
            Report.check("words exactly once", () -> all.words("exact", StreamsConfig.EXACTLY_ONCE_V2));
            Report.check("windows by event time", all::windows);
            Report.check("a restart", all::restart);
            Report.check("two instances, standbys and queries", all::two);
            Report.check("from a classic group and back", all::moved);
        }
        all.producer.close();
        all.admin.close();
        System.exit(0);
    }

    // -- what the checks are made of

    private void topics(String application) throws Exception {
        List<NewTopic> wanted = List.of(
                new NewTopic(application + "-in", PARTITIONS, (short) 1), new NewTopic(application + "-out", PARTITIONS, (short) 1));
        admin.createTopics(wanted).all().get();
        set(application, Map.of("streams.initial.rebalance.delay.ms", "0"));
    }

    private void set(String application, Map<String, String> settings) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        settings.forEach((key, value) -> changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, application), changes)).all().get();
    }

    private void say(String application, String... lines) throws Exception {
        for (int place = 0; place < lines.length; place++) {
            producer.send(new ProducerRecord<>(application + "-in", place % PARTITIONS, null, lines[place])).get();
        }
    }

    private Topology counting(String application) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(application + "-in", Consumed.with(Serdes.String(), Serdes.String()))
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
                .count(Materialized.as(STORE))
                .toStream()
                .to(application + "-out", Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    private KafkaStreams start(String application, Topology topology, String guarantee, int instance) {
        return start(application, topology, guarantee, instance, "streams");
    }

    private KafkaStreams start(String application, Topology topology, String guarantee, int instance, String protocol) {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        config.put("group.protocol", protocol);
        config.put(StreamsConfig.STATE_DIR_CONFIG, folder.resolve(application + instance).toString());
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        config.put(StreamsConfig.APPLICATION_SERVER_CONFIG, "here:" + (9000 + instance));
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        config.put("statestore.cache.max.bytes", 0);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        KafkaStreams streams = new KafkaStreams(topology, config);
        running.add(streams);
        streams.start();
        return streams;
    }

    private void stop(KafkaStreams streams) {
        Report.require(streams.close(Duration.ofSeconds(30)), "an application does not close");
        running.remove(streams);
    }

    /** The last value of every key of a topic, once they are as expected. */
    private void results(String topic, Map<String, Long> expected) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", address, "isolation.level", "read_committed");
        Map<String, Long> last = new HashMap<>();
        try (Consumer<String, Long> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new LongDeserializer())) {
            List<TopicPartition> all = new ArrayList<>();
            for (int number = 0; number < PARTITIONS; number++) {
                all.add(new TopicPartition(topic, number));
            }
            consumer.assign(all);
            consumer.seekToBeginning(all);
            until(() -> {
                consumer.poll(Duration.ofMillis(100)).forEach(one -> last.put(one.key(), one.value()));
                return last.equals(expected);
            }, () -> topic + ": expected " + expected + ", found " + last);
        }
    }

    private interface Words {
        String say() throws Exception;
    }

    private static void until(Callable<Boolean> held, Words otherwise) throws Exception {
        long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (!held.call()) {
            Report.require(System.nanoTime() < end, otherwise.say());
            Thread.sleep(50);
        }
    }

    private StreamsGroupDescription described(String application) throws Exception {
        return admin.describeStreamsGroups(Set.of(application)).describedGroups().get(application).get();
    }

    // -- the checks

    private void words(String application, String guarantee) throws Exception {
        topics(application);
        KafkaStreams streams = start(application, counting(application), guarantee, 1);
        say(application, "a b", "b c", "c c");
        results(application + "-out", Map.of("a", 1L, "b", 2L, "c", 3L));
        until(() -> described(application).groupState() == GroupState.STABLE, () -> described(application).toString());
        Report.equal(1, described(application).members().size(), "members");
        Report.equal(2, described(application).subtopologies().size(), "subtopologies");
        stop(streams);
        until(() -> described(application).groupState() == GroupState.EMPTY, () -> described(application).toString());
    }

    private void windows() throws Exception {
        String application = "windows";
        topics(application);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(application + "-in", Consumed.with(Serdes.String(), Serdes.String()))
                .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofDays(1)))
                .count()
                .toStream((window, count) -> window.key() + "@" + window.window().start())
                .to(application + "-out", Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = start(application, builder.build(), StreamsConfig.EXACTLY_ONCE_V2, 1);
        long start = System.currentTimeMillis() / 60_000 * 60_000 - 600_000;
        long[] times = {0, 59_999, 60_000, 30_000, 61_000, 1};
        for (long time : times) {
            producer.send(new ProducerRecord<>(application + "-in", (int) (time % PARTITIONS), start + time, null, "w")).get();
        }
        results(application + "-out", Map.of("w@" + start, 4L, "w@" + (start + 60_000), 2L));
        stop(streams);
    }

    private void restart() throws Exception {
        say("exact", "a", "d");
        KafkaStreams streams = start("exact", counting("exact"), StreamsConfig.EXACTLY_ONCE_V2, 1);
        results("exact-out", Map.of("a", 2L, "b", 2L, "c", 3L, "d", 1L));
        stop(streams);
    }

    /** Its state stays in the folder, and its offsets and changelog in the group: each protocol goes on where the other has ended. */
    private void moved() throws Exception {
        String application = "moved";
        topics(application);
        Map<String, Long> expected = new HashMap<>();
        for (String protocol : List.of("classic", "streams", "classic")) {
            KafkaStreams streams = start(application, counting(application), StreamsConfig.EXACTLY_ONCE_V2, 1, protocol);
            say(application, "a b", "b");
            expected.merge("a", 1L, Long::sum);
            expected.merge("b", 2L, Long::sum);
            results(application + "-out", expected);
            until(() -> type(application).equals(protocol), () -> protocol + " expected, found " + type(application));
            Report.require(streams.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP)
                    .withTimeout(Duration.ofSeconds(30))), "an application does not close");
            running.remove(streams);
        }
    }

    private String type(String group) throws Exception {
        return admin.listGroups().all().get().stream().filter(one -> one.groupId().equals(group))
                .flatMap(one -> one.type().stream()).map(GroupType::toString).findFirst().orElse("none").toLowerCase(Locale.ROOT);
    }

    private static int tasks(KafkaStreams streams, boolean active) {
        return streams.metadataForLocalThreads().stream()
                .mapToInt(one -> active ? one.activeTasks().size() : one.standbyTasks().size()).sum();
    }

    private void two() throws Exception {
        String application = "two";
        topics(application);
        set(application, Map.of("streams.num.standby.replicas", "1"));
        KafkaStreams first = start(application, counting(application), StreamsConfig.AT_LEAST_ONCE, 1);
        say(application, "a b", "b c", "c c");
        results(application + "-out", Map.of("a", 1L, "b", 2L, "c", 3L));
        KafkaStreams second = start(application, counting(application), StreamsConfig.AT_LEAST_ONCE, 2);
        until(() -> tasks(first, true) == 3 && tasks(second, true) == 3 && tasks(first, false) + tasks(second, false) == 3,
                () -> first.metadataForLocalThreads() + " " + second.metadataForLocalThreads());
        say(application, "a", "b", "c");
        results(application + "-out", Map.of("a", 2L, "b", 3L, "c", 4L));
        for (String word : List.of("a", "b", "c")) {
            long expected = Map.of("a", 2L, "b", 3L, "c", 4L).get(word);
            until(() -> {
                KeyQueryMetadata where = first.queryMetadataForKey(STORE, word, new StringSerializer());
                return where.standbyHosts().size() == 1 && !where.standbyHosts().contains(where.activeHost());
            }, () -> word + " is at " + first.queryMetadataForKey(STORE, word, new StringSerializer()));
            HostInfo copy = first.queryMetadataForKey(STORE, word, new StringSerializer()).standbyHosts().iterator().next();
            ReadOnlyKeyValueStore<String, Long> store = (copy.port() == 9001 ? first : second)
                    .store(StoreQueryParameters.<ReadOnlyKeyValueStore<String, Long>>fromNameAndType(STORE, QueryableStoreTypes.keyValueStore())
                            .enableStaleStores());
            until(() -> Long.valueOf(expected).equals(store.get(word)), () -> word + " of the copy: " + store.get(word));
        }
        stop(first);
        until(() -> tasks(second, true) == 6, () -> second.metadataForLocalThreads().toString());
        say(application, "a", "b", "c");
        results(application + "-out", Map.of("a", 3L, "b", 4L, "c", 5L));
        stop(second);
    }
}
