// Replaces cassandra-stress's own Timer in traced loads and does the same. When the program exits, it also writes the times of all operations
// of the last run to the file that TARE_REQUESTS names. The last run is the measured one; earlier runs warm up.
package org.apache.cassandra.stress.report;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.cassandra.stress.StressAction;

public final class Timer {
    private static final int MOST = 1 << 20; // operations that all timers of a run keep, about
    private static int room = 2 * MOST; // numbers for which there is room left
    private static final List<Timer> run = new ArrayList<>(); // the timers of the latest run
    private static volatile boolean used; // a timer of this run has timed something; a run makes all its timers before that

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(Timer::write));
    }

    private final String opType;
    private final StressAction.MeasurementSink sink;
    private long intendedTimeNs, startTimeNs;
    private long[] times = new long[1024]; // begin and end of each operation, in ns of System.nanoTime, Linux's monotonic clock
    private int n;

    public Timer(String opType, StressAction.MeasurementSink sink) {
        this.opType = opType;
        this.sink = sink;
        synchronized (run) {
            if (used) {
                run.clear();
                room = 2 * MOST;
                used = false;
            }
            run.add(this);
        }
    }

    public void stop(long partitionCount, long rowCount, boolean error) {
        long now = System.nanoTime();
        sink.record(opType, intendedTimeNs, startTimeNs, now, rowCount, partitionCount, error);
        if (!used)
            used = true;
        if (!error && n == times.length && more(n))
            times = Arrays.copyOf(times, 2 * n);
        if (!error && n < times.length) {
            times[n] = intendedTimeNs != 0 ? intendedTimeNs : startTimeNs;
            times[n + 1] = now;
            n += 2;
        }
        intendedTimeNs = startTimeNs = 0;
    }

    // more takes room for so many numbers, if there is enough.
    private static boolean more(int numbers) {
        synchronized (run) {
            if (room < numbers)
                return false;
            room -= numbers;
            return true;
        }
    }

    public void intendedTimeNs(long v) {
        intendedTimeNs = v;
    }

    public void start() {
        startTimeNs = System.nanoTime();
    }

    private static void write() {
        int operation = 0;
        try (PrintWriter to = new PrintWriter(Files.newBufferedWriter(Paths.get(System.getenv("TARE_REQUESTS"))))) {
            to.println("monotonic");
            synchronized (run) {
                for (Timer t : run)
                    for (int i = 0; i < t.n; i += 2)
                        to.println(operation++ + " " + t.times[i] + " " + t.times[i + 1]);
            }
            if (to.checkError())
                throw new IOException("the disk may be full");
        } catch (IOException e) {
            System.err.println("cannot write the times of the operations: " + e);
        }
    }
}
