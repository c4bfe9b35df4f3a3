import java.nio.file.Path;
import java.util.Arrays;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A release without headers, transactions and an admin class: 0.10. */
final class Old extends Checks {
    private Old(String address, String prefix, Plan plan) {
        super(address, prefix, plan);
    }

    @Override
    ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long waitMs) {
        return consumer.poll(waitMs);
    }

    @Override
    ProducerRecord<byte[], byte[]> record(String topic, Plan.Sample sample) {
        return new ProducerRecord<>(topic, 0, sample.timestamp(), sample.key(), sample.value());
    }

    @Override
    String text(ConsumerRecord<byte[], byte[]> record) {
        return new Plan.Sample(record.timestamp(), record.key(), record.value(), "").text(false);
    }

    @Override
    boolean hasHeaders() {
        return false;
    }

    public static void main(String[] arguments) throws Exception {
        Checks checks = new Old(arguments[0], arguments[1], new Plan(Path.of(arguments[2])));
        Arrays.stream(arguments).skip(3).forEach(check -> Report.check(check, () -> checks.run(check)));
        System.exit(0);
    }
}
