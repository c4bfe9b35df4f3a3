import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** What to write and what to look up, read from the file that the test made: one tab-separated line each. */
final class Plan {
    /** One record; a null key or value is null, headers are `name=hex` joined by commas. */
    record Sample(long timestamp, byte[] key, byte[] value, String headers) {
        String text(boolean withHeaders) {
            return timestamp + " " + hex(key) + " " + hex(value) + (withHeaders ? " " + headers : "");
        }
    }

    /** A time and the offset of the first record at or after it, -1 when there is none. */
    record LookUp(long timestamp, long offset) {}

    final List<Sample> samples = new ArrayList<>();
    final List<LookUp> lookUps = new ArrayList<>();

    Plan(Path file) throws IOException {
        for (String line : Files.readAllLines(file)) {
            String[] parts = line.split("\t", -1);
            if (parts[0].equals("record")) {
                samples.add(new Sample(Long.parseLong(parts[1]), bytes(parts[2]), bytes(parts[3]), parts[4]));
            } else {
                lookUps.add(new LookUp(Long.parseLong(parts[1]), Long.parseLong(parts[2])));
            }
        }
    }

    static byte[] bytes(String hex) {
        return hex.equals("-") ? null : HexFormat.of().parseHex(hex);
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "-" : HexFormat.of().formatHex(bytes);
    }
}
