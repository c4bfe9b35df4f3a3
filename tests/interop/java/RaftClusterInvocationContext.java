package org.apache.kafka.common.test.junit;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.opentest4j.TestAbortedException;

/**
 * Stands in for the class of the same name that starts Kafka's brokers in the JVM of the tests: starts a process of another broker.
 *
 * <p>The system property {@code broker.command} is the command, in words that spaces divide; the folder of its data and its settings
 * follow. Several brokers are as many workers, each with its own partitions; topics have one copy. A test that needs a login or an older
 * feature level, gives the broker a class, or looks into a broker, is skipped, even if it catches that, or asks in another thread.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String name;
    private final ClusterConfig config;

    public RaftClusterInvocationContext(String name, ClusterConfig config, boolean isCombined) {
        this.name = name;
        this.config = config;
    }

    @Override
    public String getDisplayName(int number) {
        return name + " [" + number + "]";
    }

    private static MetadataVersion latest() {
        return ClusterConfig.defaultBuilder().build().metadataVersion();
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        BrokerInstance instance = new BrokerInstance(config);
        BeforeEachCallback before = context -> {
            if (config.brokerSecurityProtocol() != SecurityProtocol.PLAINTEXT) {
                throw new TestAbortedException("needs a login");
            }
            if (config.metadataVersion() != latest()
                    || config.features().entrySet().stream().anyMatch(one -> one.getValue() < one.getKey().latestProduction())) {
                throw new TestAbortedException("needs an older feature level");
            }
            if (config.serverProperties().values().stream().anyMatch(value -> value.contains("org.apache.kafka."))) {
                throw new TestAbortedException("gives the broker a class");
            }
            if (config.isAutoStart()) {
                instance.start();
            }
        };
        TestExecutionExceptionHandler failed = (context, error) -> {
            throw instance.skipped == null ? error : instance.skipped;
        };
        AfterEachCallback after = context -> {
            instance.stop();
            if (instance.skipped != null && context.getExecutionException().isEmpty()) {
                throw instance.skipped;
            }
        };
        return Arrays.asList(before, failed, after, new ClusterInstanceParameterResolver(instance));
    }

    private static final class BrokerInstance implements ClusterInstance {
        private static final int NODE = 0;
        private static final Pattern ADDRESS = Pattern.compile("127\\.0\\.0\\.1:\\d+");
        private final ClusterConfig config;
        private Path folder;
        private Process process;
        private String address = "127.0.0.1:0";
        private boolean started;
        private boolean stopped;
        private volatile TestAbortedException skipped;

        BrokerInstance(ClusterConfig config) {
            this.config = config;
        }

        @Override
        public void start() {
            if (started) {
                return;
            }
            started = true;
            try {
                folder = Files.createTempDirectory("peers-kafka-");
                run();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private void run() throws IOException {
            List<String> words = new ArrayList<>(Arrays.asList(System.getProperty("broker.command").split(" ")));
            words.addAll(List.of("--data", folder.resolve("data").toString(), "--listen", address));
            Map<String, String> settings = new TreeMap<>(config.serverProperties());
            settings.putIfAbsent("node.id", Integer.toString(NODE));
            if (config.numBrokers() > 1) {
                settings.put("horolog.workers", Integer.toString(config.numBrokers()));
            }
            config.perServerOverrideProperties().values().forEach(settings::putAll);
            settings.keySet().removeIf(key -> key.contains(" ")); // Kafka passes over what is no setting, horolog refuses it
            settings.forEach((key, value) -> words.addAll(List.of("--set", key + "=" + value)));
            ProcessBuilder builder = new ProcessBuilder(words);
            builder.redirectError(folder.resolve("stderr").toFile());
            process = builder.start();
            BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream()));
            String line = lines.readLine();
            Matcher found = ADDRESS.matcher(line == null ? "" : line);
            if (!found.find()) {
                throw new IOException("the broker does not start: " + Files.readString(folder.resolve("stderr")));
            }
            address = found.group();
        }

        private void end() {
            process.destroy();
            try {
                if (!process.waitFor(60, TimeUnit.SECONDS)) {
                    process.destroyForcibly();
                }
            } catch (InterruptedException error) {
                process.destroyForcibly();
                Thread.currentThread().interrupt();
            }
        }

        @Override
        public void stop() {
            if (process != null && !stopped) {
                end();
                remove(folder.toFile());
            }
            stopped = true;
        }

        private static void remove(File file) {
            for (File one : Optional.ofNullable(file.listFiles()).orElse(new File[0])) {
                remove(one);
            }
            file.delete();
        }

        @Override
        public void shutdownBroker(int id) {
            if (config.numBrokers() > 1) {
                throw skip("stops one of several brokers");
            }
            end();
        }

        @Override
        public void startBroker(int id) {
            try {
                run();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private TestAbortedException skip(String reason) {
            skipped = new TestAbortedException(reason);
            return skipped;
        }

        /** With one copy, whatever the test asks for: there are no others. A topic that is there stays as it is. */
        @Override
        public void createTopic(String name, int partitions, short replicas) throws InterruptedException {
            createTopic(name, partitions, replicas, Map.of());
        }

        @Override
        public void createTopic(String name, int partitions, short replicas, Map<String, String> settings)
                throws InterruptedException {
            try (Admin admin = admin()) {
                admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(settings))).all().get();
            } catch (ExecutionException error) {
                if (!(error.getCause() instanceof TopicExistsException)) {
                    throw new IllegalStateException(error.getCause());
                }
            }
        }

        @Override
        public String clusterId() {
            try (Admin admin = admin()) {
                return admin.describeCluster().clusterId().get();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public Type type() {
            return Type.KRAFT;
        }

        @Override
        public Set<Integer> brokerIds() {
            try (Admin admin = admin()) {
                return admin.describeCluster().nodes().get().stream().map(Node::id).collect(Collectors.toSet());
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }

        /** One that stands for all: it says that it is alive or has stopped, and can be stopped. */
        @Override
        public Map<Integer, KafkaBroker> brokers() {
            MetadataCache cache = only(MetadataCache.class, "getAliveBrokerNodes", List.of(new Node(NODE, "127.0.0.1", port())));
            return Map.of(NODE, only(KafkaBroker.class, "metadataCache", cache));
        }

        private <T> T only(Class<T> kind, String method, Object answer) {
            Object made = Proxy.newProxyInstance(kind.getClassLoader(), new Class<?>[] {kind}, (self, asked, arguments) -> {
                if (asked.getName().equals(method)) {
                    return answer;
                }
                if (asked.getName().equals("awaitShutdown")) {
                    return null; // its process has ended
                }
                if (asked.getName().equals("shutdown")) {
                    end();
                    return null;
                }
                throw skip("looks into the broker: " + asked.getName());
            });
            return kind.cast(made);
        }

        private int port() {
            return Integer.parseInt(address.substring(address.indexOf(':') + 1));
        }

        /** None that the waits for topics in each broker's memory could look into. */
        @Override
        public Map<Integer, KafkaBroker> aliveBrokers() {
            return Map.of();
        }

        @Override
        public Set<GroupProtocol> supportedGroupProtocols() {
            return Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER);
        }

        @Override
        public void ensureConsistentMetadata() {
            // there is one broker, and it answers by what it has
        }

        @Override
        public Map<Integer, ControllerServer> controllers() {
            return Map.of();
        }

        @Override
        public ClusterConfig config() {
            return config;
        }

        @Override
        public Set<Integer> controllerIds() {
            return Set.of();
        }

        @Override
        public ListenerName clientListener() {
            return ListenerName.normalised("PLAINTEXT");
        }

        @Override
        public ListenerName controllerListenerName() {
            return config.controllerListenerName();
        }

        @Override
        public String bootstrapServers() {
            return address;
        }

        @Override
        public String bootstrapControllers() {
            return address;
        }

        @Override
        public Optional<FaultHandlerException> firstFatalException() {
            return Optional.empty();
        }

        @Override
        public Optional<FaultHandlerException> firstNonFatalException() {
            return Optional.empty();
        }

        @Override
        public boolean started() {
            return started;
        }

        @Override
        public boolean stopped() {
            return stopped;
        }

        @Override
        public void waitForReadyBrokers() {
            // a broker that has printed its address is ready
        }
    }
}
