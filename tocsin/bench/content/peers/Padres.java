import ca.utoronto.msrg.padres.broker.router.matching.rete.retenetwork.ReteNetwork;
import ca.utoronto.msrg.padres.common.message.Predicate;
import ca.utoronto.msrg.padres.common.message.Publication;
import ca.utoronto.msrg.padres.common.message.Subscription;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;

/**
 * The Rete network of PADRES, which matches publications in its brokers, as a contestant of {@code tocsin bench
 * content}.
 *
 * <p>What it is started with, told and answers is described in {@code tocsin/bench/content/contestant.py}, the format of
 * the files in {@code tocsin/bench/content/workload.py}.
 */
public final class Padres {
    private static final int BATCH = 1000;
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final ReteNetwork network = new ReteNetwork(ReteNetwork.NWType.SUB_TREE, null);
    private final List<Publication> published = new ArrayList<>();
    private int next;

    public static void main(String[] arguments) throws Exception {
        Logger.getRootLogger().setLevel(Level.OFF);
        Padres padres = new Padres();
        padres.readPublications(Path.of(arguments[1]));
        long before = occupied();
        padres.insert(Path.of(arguments[0]), Integer.parseInt(arguments[2]), Double.parseDouble(arguments[3]), before);
        padres.serve();
    }

    private void readPublications(Path path) throws IOException {
        for (String line : Files.readAllLines(path)) {
            String[] fields = line.split("\t");
            Publication publication = new Publication();
            for (int at = 0; at < fields.length; at += 3) {
                publication.addPair(fields[at], value(fields[at + 1], fields[at + 2]));
            }
            published.add(publication);
        }
    }

    /** Inserts subscriptions until there are enough, or the time is up. Reading them does not count. */
    private void insert(Path path, int count, double limit, long before) throws Exception {
        int inserted = 0;
        double seconds = 0.0;
        try (BufferedReader lines = Files.newBufferedReader(path)) {
            while (inserted < count && seconds < limit) {
                List<Subscription> batch = read(lines, Math.min(BATCH, count - inserted));
                if (batch.isEmpty()) {
                    break;
                }
                double began = processorTime();
                for (Subscription subscription : batch) {
                    network.addSub(subscription, Integer.toString(inserted++));
                }
                seconds += processorTime() - began;
            }
        }
        System.out.println(inserted + " " + seconds + " " + (occupied() - before));
    }

    private static List<Subscription> read(BufferedReader lines, int most) throws IOException {
        List<Subscription> batch = new ArrayList<>();
        String line;
        while (batch.size() < most && (line = lines.readLine()) != null) {
            String[] fields = line.split("\t");
            Subscription subscription = new Subscription();
            for (int at = 0; at < fields.length; at += 4) {
                String operator = fields[at + 2].equals("s") ? "eq" : fields[at + 1];
                subscription.addPredicate(fields[at], new Predicate(operator, value(fields[at + 2], fields[at + 3])));
            }
            batch.add(subscription);
        }
        return batch;
    }

    private static Serializable value(String kind, String text) {
        return kind.equals("s") ? text : (Serializable) Double.valueOf(text);
    }

    /** Does what it is told until there is nothing more. */
    private void serve() throws IOException {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = commands.readLine()) != null) {
            String[] words = line.split(" ");
            System.out.println(words[0].equals("match") ? match(Integer.parseInt(words[1])) : turn(Double.parseDouble(words[1])));
        }
    }

    private String match(int at) {
        StringBuilder found = new StringBuilder();
        Map<Publication, Set<String>> matches = network.getMatches(published.get(at));
        for (Set<String> numbers : matches.values()) {
            for (String number : numbers) {
                found.append(number).append(' ');
            }
        }
        return found.toString();
    }

    private String turn(double limit) {
        double began = processorTime();
        double seconds = 0.0;
        int matched = 0;
        while (matched == 0 || seconds < limit) {
            network.getMatches(published.get(next));
            next = (next + 1) % published.size();
            matched++;
            seconds = processorTime() - began;
        }
        return matched + " " + seconds;
    }

    /** Seconds that this process has had of a processor. */
    private static double processorTime() {
        return SYSTEM.getProcessCpuTime() / 1e9;
    }

    /** Bytes of the heap that are in use. What only the first collection makes free is gone with the second. */
    private static long occupied() {
        System.gc();
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }
}
