import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.security.MessageDigest;
import java.util.concurrent.Executors;

/** Answers each request to a port with a hash that takes a known amount of work. */
public class Service {
	public static void main(String[] args) throws Exception {
		int rounds = Integer.parseInt(args[0]);
		HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 128);
		server.setExecutor(Executors.newFixedThreadPool(8));
		server.createContext("/", exchange -> {
			try {
				MessageDigest hash = MessageDigest.getInstance("SHA-256");
				byte[] sum = hash.digest(exchange.getRequestURI().getPath().getBytes());
				for (int i = 0; i < rounds; i++) {
					byte[] block = new byte[4096];
					System.arraycopy(sum, 0, block, 0, sum.length);
					sum = hash.digest(block);
				}
				exchange.sendResponseHeaders(200, sum.length);
				exchange.getResponseBody().write(sum);
			} catch (java.security.NoSuchAlgorithmException e) {
				throw new RuntimeException(e);
			} finally {
				exchange.close();
			}
		});
		server.start();
		System.out.println(server.getAddress().getPort());
	}
}
