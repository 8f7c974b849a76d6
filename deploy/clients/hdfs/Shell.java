import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.util.ToolRunner;

/**
 * Runs commands of the file system shell ("hdfs dfs") in one JVM, as a user's
 * long-lived program does: one client, with its connections and its idea of
 * who is active, serves all of them. A JVM for each command would cost seconds
 * of CPU, and would forget all that.
 *
 * Standard input: "ID WORD WORD ...", one command a line. Standard output, when
 * it ended: "ID STATUS OUT ERR", what it printed in base64. Commands of one ID
 * run one after the other, those of different IDs side by side.
 */
public class Shell {
  /** Writes where the command of this thread wants it. */
  static class Mine extends OutputStream {
    final ThreadLocal<PrintStream> to = new ThreadLocal<>();
    final PrintStream rest;
    Mine(PrintStream rest) { this.rest = rest; }
    ByteArrayOutputStream begin() {
      ByteArrayOutputStream buf = new ByteArrayOutputStream();
      to.set(new PrintStream(buf, true));
      return buf;
    }
    String end(ByteArrayOutputStream buf) {
      to.get().flush();
      to.remove();
      return Base64.getEncoder().encodeToString(buf.toByteArray());
    }
    PrintStream at() { PrintStream p = to.get(); return p == null ? rest : p; }
    @Override public void write(int b) { at().write(b); }
    @Override public void write(byte[] b, int off, int len) { at().write(b, off, len); }
    @Override public void flush() { at().flush(); }
  }

  public static void main(String[] args) throws Exception {
    PrintStream answers = System.out;
    Mine out = new Mine(System.err), err = new Mine(System.err);
    System.setOut(new PrintStream(out, true));
    System.setErr(new PrintStream(err, true));
    Configuration conf = new Configuration();
    Map<String, ExecutorService> workers = new HashMap<>();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    answers.println("ready");
    answers.flush();
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.trim().split(" ");
      if (words.length < 2) continue;
      String id = words[0];
      workers.computeIfAbsent(id, k -> Executors.newSingleThreadExecutor()).submit(() -> {
        ByteArrayOutputStream outs = out.begin(), errs = err.begin();
        int status;
        try {
          status = ToolRunner.run(conf, new FsShell(), Arrays.copyOfRange(words, 1, words.length));
        } catch (Throwable t) {
          t.printStackTrace();
          status = 255;
        }
        String answer = id + " " + status + " " + out.end(outs) + " " + err.end(errs);
        synchronized (answers) {
          answers.println(answer);
          answers.flush();
        }
      });
    }
    System.exit(0); // commands that hang keep nobody
  }
}
