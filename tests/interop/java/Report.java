/** Runs checks one after the other and prints one line of JSON for each. */
final class Report {
    /** Each worker is a broker to clients. */
    static final int BROKERS =
            Integer.parseInt(
                    System.getenv()
                            .getOrDefault(
                                    "HOROLOG_TEST_BROKERS",
                                    System.getenv().getOrDefault("HOROLOG_TEST_WORKERS", "1")));

    interface Check {
        void run() throws Exception;
    }

    private Report() {}

    static void check(String name, Check check) {
        String detail = "";
        try {
            check.run();
        } catch (Throwable error) {
            detail = describe(error);
            error.printStackTrace();
        }
        System.out.println("{\"check\": \"" + name + "\", \"ok\": " + detail.isEmpty() + ", \"detail\": \"" + detail + "\"}");
        System.out.flush();
    }

    private static String describe(Throwable error) {
        String text = error + (error.getCause() == null ? "" : " / " + error.getCause());
        return text.substring(0, Math.min(text.length(), 400)).replaceAll("[^ -!#-\\[\\]-~]", " ");
    }

    static void equal(Object expected, Object found, String what) {
        require(expected.equals(found), what + ": expected " + expected + ", found " + found);
    }

    static void require(boolean held, String otherwise) {
        if (!held) {
            throw new AssertionError(otherwise);
        }
    }
}
