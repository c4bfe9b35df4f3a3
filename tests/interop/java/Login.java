import java.io.FileInputStream;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/** Says of each file of settings whether it lets somebody in at a listener: ADDRESS FILE... */
public final class Login {
    public static void main(String[] arguments) throws Exception {
        for (int at = 1; at < arguments.length; at++) {
            Properties config = new Properties();
            try (FileInputStream file = new FileInputStream(arguments[at])) {
                config.load(file);
            }
            config.put("bootstrap.servers", arguments[0]);
            // The first attempt also loads the client's classes, and what is refused waits for as long as it may.
            String mostMs = at == 1 ? "30000" : "6000";
            config.put("request.timeout.ms", mostMs);
            config.put("default.api.timeout.ms", mostMs);
            System.out.println(outcome(config).replace('\n', ' '));
        }
    }

    private static String outcome(Properties config) throws InterruptedException {
        try (Admin admin = Admin.create(config)) {
            admin.listTopics().names().get();
            return "in";
        } catch (ExecutionException error) {
            return "refused: " + error.getCause();
        } catch (KafkaException error) {
            return "no client: " + error + " " + error.getCause();
        }
    }

    /** Gives the token that the line of JAAS has, in a way that every release knows. */
    public static final class Given implements AuthenticateCallbackHandler, OAuthBearerToken {
        private final long madeMs = System.currentTimeMillis();
        private String value;

        @Override
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
            value = (String) entries.get(0).getOptions().get("token");
        }

        @Override
        public void handle(Callback[] callbacks) {
            for (Callback callback : callbacks) {
                if (callback instanceof OAuthBearerTokenCallback) {
                    ((OAuthBearerTokenCallback) callback).token(this);
                }
            }
        }

        @Override
        public void close() {}

        @Override
        public String value() {
            return value;
        }

        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return madeMs + 600_000;
        }

        @Override
        public String principalName() {
            return "ann";
        }

        @Override
        public Long startTimeMs() {
            return madeMs;
        }
    }
}
