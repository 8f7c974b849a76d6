import java.io.*;
import java.time.Instant;
import java.util.*;
import java.util.concurrent.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;
import org.apache.hadoop.ipc.RemoteException;

/**
 * A user of HDFS 0.20, by the library that came with it. "work SECONDS FILES" creates files one after the
 * other, appends to each and reads it; "final" reads all. A file has two parts, the created one and the
 * appended one, and each is a key of the history ("f0.0", "f0.1"): write, then final-read.
 */
public class Client {
  static final int PART = 200_000; // three packets and a bit
  static final long START = Long.parseLong(System.getenv("NETSPLIT_RUN_START"));
  // A DataNode may fail, and so may another, as long as one of the three is there.
  static final String NEEDS = "[{\"via\":\"c1\",\"from\":[\"n1\"],\"count\":1},{\"via\":\"c1\",\"from\":[\"n2\",\"n3\",\"n4\"],\"count\":2},"
      + "{\"via\":\"n1\",\"from\":[\"n2\",\"n3\",\"n4\"],\"count\":2}]";
  static long process;

  interface Body { String run() throws Exception; }

  /** Runs an operation and prints its two lines; the answer, or null. */
  static String run(String f, String key, String value, long seconds, Body body) {
    long p = process++;
    print("invoke", p, f, key, value, null);
    FutureTask<String> task = new FutureTask<>(body::run);
    Thread t = new Thread(task);
    t.setDaemon(true);
    t.start();
    try {
      String got = task.get(seconds, TimeUnit.SECONDS);
      print("ok", p, f, key, got, null);
      return got;
    } catch (TimeoutException | InterruptedException e) {
      print("info", p, f, key, value, "timeout");
    } catch (ExecutionException e) {
      Throwable why = e.getCause();
      String name = why instanceof RemoteException ? ((RemoteException) why).getClassName() : why.getClass().getName();
      print(f.equals("write") ? "info" : "fail", p, f, key, value,
          name.substring(name.lastIndexOf('.') + 1) + " " + String.valueOf(why.getMessage()).split("\n")[0]);
    }
    return null;
  }

  static synchronized void print(String type, long p, String f, String key, String value, String error) {
    StringBuilder b = new StringBuilder("{\"process\":" + p);
    Instant now = Instant.now();
    b.append(",\"time\":").append(now.getEpochSecond() * 1_000_000_000 + now.getNano() - START);
    add(b, "type", type);
    add(b, "f", f);
    add(b, "key", key);
    add(b, "value", value);
    add(b, "error", error);
    if (type.equals("invoke") && (f.equals("write") || f.equals("read"))) b.append(",\"needs\":").append(NEEDS);
    System.out.println(b.append('}'));
  }

  static void add(StringBuilder b, String name, String value) {
    if (value == null) return;
    b.append(",\"").append(name).append("\":\"");
    for (char c : value.toCharArray()) {
      if (c == '"' || c == '\\') b.append('\\');
      b.append(c < ' ' ? ' ' : c);
    }
    b.append('"');
  }

  static byte[] part(String key) {
    byte[] b = new byte[PART];
    new Random(key.hashCode()).nextBytes(b);
    return b;
  }

  static String sum(byte[] b) { return Integer.toHexString(Arrays.hashCode(b)); }

  static String write(FSDataOutputStream out, String key) throws IOException {
    byte[] b = part(key);
    out.write(b);
    out.close();
    return sum(b);
  }

  /** What a file holds, part by part. */
  static List<String> parts(FileSystem fs, Path p) throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    try (FSDataInputStream in = fs.open(p)) {
      byte[] b = new byte[1 << 16];
      for (int n = in.read(b); n > 0; n = in.read(b)) all.write(b, 0, n);
    }
    List<String> out = new ArrayList<>();
    byte[] got = all.toByteArray();
    for (int at = 0; at < got.length; at += PART) out.add(sum(Arrays.copyOfRange(got, at, Math.min(got.length, at + PART))));
    return out;
  }

  public static void main(String[] args) throws Exception {
    System.exit(args[0].equals("work") ? work(Long.parseLong(args[1]), Integer.parseInt(args[2])) : last());
  }

  static int work(long seconds, int files) throws Exception {
    long until = System.currentTimeMillis() + seconds * 1000;
    FileSystem fs = FileSystem.get(new Configuration());
    for (int i = 0; i < files && System.currentTimeMillis() < until; i++) {
      String file = "f" + i, one = file + ".0", two = file + ".1";
      Path p = new Path("/" + file);
      if (run("write", one, sum(part(one)), 40, () -> write(fs.create(p), one)) == null) continue;
      run("write", two, sum(part(two)), 40, () -> write(fs.append(p), two));
      run("read", file, null, 20, () -> String.join(" ", parts(fs, p)));
    }
    return 0;
  }

  static int last() throws Exception {
    FileSystem fs = FileSystem.get(new Configuration());
    run("final-read-done", null, null, 60, () -> {
      FileStatus[] all = fs.listStatus(new Path("/"));
      for (FileStatus s : all == null ? new FileStatus[0] : all) {
        String file = s.getPath().getName();
        int n = 0;
        try {
          for (String sum : parts(fs, s.getPath())) {
            String key = file + "." + n++;
            run("final-read", key, null, 1, () -> sum);
          }
        } catch (IOException e) {
          run("final-read", file, null, 1, () -> { throw e; });
        }
      }
      return null;
    });
    return 0;
  }
}
