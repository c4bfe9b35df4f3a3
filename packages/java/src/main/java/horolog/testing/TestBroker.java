package horolog.testing;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A broker of {@code horolog test-broker}. It ends with {@link #close}, and with this process at the latest. */
public final class TestBroker implements AutoCloseable {
    private static final long READY_SECONDS = 30;

    private final Process process;
    private final File errors;
    private final String line;
    private final HttpClient http = HttpClient.newHttpClient();

    private TestBroker(Process process, File errors, String line) {
        this.process = process;
        this.errors = errors;
        this.line = line;
    }

    /** Starts a broker without topics on a free port, with its data in memory. */
    public static TestBroker start() {
        return new Builder().start();
    }

    public static Builder builder() {
        return new Builder();
    }

    /** The value of {@code bootstrap.servers}. */
    public String bootstrap() {
        return field("bootstrap");
    }

    /** The URL of the control endpoint. */
    public String control() {
        return field("control");
    }

    /** The URL of the schema registry, or null without one. */
    public String registry() {
        return field("registry");
    }

    public long pid() {
        return process.pid();
    }

    /** Moves the broker's clock, and returns once everything due is done: {@code advance("3 days")}. */
    public void advance(String by) {
        call("POST", "/clock/advance", "{\"by\": \"" + by + "\"}");
    }

    /** Sends a request to the control endpoint, and returns its JSON. */
    public String call(String method, String path, String body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(control() + path))
            .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        try {
            HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                throw new IllegalStateException(response.body());
            }
            return response.body();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(error);
        }
    }

    /** Ends the broker and waits for its end. */
    @Override
    public void close() {
        try {
            process.getOutputStream().close();
            if (!process.waitFor(READY_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
            Files.deleteIfExists(errors.toPath());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    private String field(String name) {
        Matcher found = Pattern.compile("\"" + name + "\": ?\"([^\"]*)\"").matcher(line);
        return found.find() ? found.group(1) : null;
    }

    /** The options of a broker. */
    public static final class Builder {
        private final List<String> command = new ArrayList<>(List.of("horolog"));
        private final List<String> options = new ArrayList<>();

        /** Creates a topic. */
        public Builder topic(String name, int partitions) {
            return with("--topic", name + ":" + partitions);
        }

        /** Sets a setting of the broker. */
        public Builder set(String key, Object value) {
            return with("--set", key + "=" + value);
        }

        /** Stops the clock at this time, such as {@code 2026-11-17 10:05}. */
        public Builder clock(String time) {
            return with("--clock", time);
        }

        /** Runs a schema registry beside the broker. */
        public Builder registry() {
            return with("--registry");
        }

        /** Runs another command than {@code horolog}. */
        public Builder command(String... words) {
            command.clear();
            command.addAll(Arrays.asList(words));
            return this;
        }

        /** Starts the broker; throws IllegalStateException if it does not start. */
        public TestBroker start() {
            List<String> words = new ArrayList<>(command);
            words.addAll(List.of("test-broker", "--json"));
            words.addAll(options);
            try {
                File errors = File.createTempFile("horolog", ".err");
                errors.deleteOnExit();
                Process process = new ProcessBuilder(words).redirectError(errors).start();
                String line = firstLine(process);
                if (line == null) {
                    process.destroyForcibly();
                    throw new IllegalStateException("the broker did not start: " + Files.readString(errors.toPath()));
                }
                return new TestBroker(process, errors, line);
            } catch (IOException error) {
                throw new IllegalStateException("the broker did not start; install it with: pip install horolog", error);
            }
        }

        private Builder with(String... words) {
            options.addAll(Arrays.asList(words));
            return this;
        }

        private static String firstLine(Process process) throws IOException {
            CompletableFuture<Void> late = CompletableFuture.runAsync(
                process::destroyForcibly, CompletableFuture.delayedExecutor(READY_SECONDS, TimeUnit.SECONDS));
            BufferedReader output = new BufferedReader(
                new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            try {
                return output.readLine();
            } finally {
                late.cancel(false);
            }
        }
    }
}
