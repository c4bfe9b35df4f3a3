import java.io.FileInputStream;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.KafkaException;

/** Says of each file of settings whether it lets somebody in at a listener: ADDRESS FILE... */
public final class Login {
    public static void main(String[] arguments) throws Exception {
        for (int at = 1; at < arguments.length; at++) {
            Properties config = new Properties();
            try (FileInputStream file = new FileInputStream(arguments[at])) {
                config.load(file);
            }
            config.put("bootstrap.servers", arguments[0]);
            config.put("request.timeout.ms", "4000");
            config.put("default.api.timeout.ms", "4000");
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
}
