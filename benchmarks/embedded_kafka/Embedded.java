import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import org.springframework.kafka.test.EmbeddedKafkaKraftBroker;

/** Spring's embedded Kafka in a JVM: starts one for each line of its input, which is its address then, and ends it at the next line. */
public final class Embedded {
    private Embedded() {
    }

    public static void main(String[] words) throws IOException {
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            EmbeddedKafkaKraftBroker broker = new EmbeddedKafkaKraftBroker(1, 1);
            broker.brokerProperty("transaction.state.log.replication.factor", "1");
            broker.brokerProperty("transaction.state.log.min.isr", "1");
            broker.afterPropertiesSet();
            answers.println(broker.getBrokersAsString());
            answers.flush();
            if (lines.readLine() == null) {
                break;
            }
            broker.destroy();
        }
        Runtime.getRuntime().halt(0);
    }
}
