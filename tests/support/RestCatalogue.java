// Apache Iceberg's own REST catalogue for tests, over a catalogue in SQLite, on a free port of loopback, which it prints.
// Arguments are properties of that catalogue, KEY=VALUE. It ends when its standard input does.

import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

public class RestCatalogue {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> properties = new HashMap<>();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        JdbcCatalog catalogue = new JdbcCatalog();
        catalogue.initialize("behind", properties);
        ServletContextHandler handler = new ServletContextHandler();
        handler.setContextPath("/");
        handler.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalogue))), "/*");
        Server server = new Server(new InetSocketAddress("127.0.0.1", 0));
        server.setHandler(handler);
        server.start();
        System.out.println(((ServerConnector) server.getConnectors()[0]).getLocalPort());
        System.out.flush();
        while (System.in.read() >= 0) {
        }
        System.exit(0);
    }
}
