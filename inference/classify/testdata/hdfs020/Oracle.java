import java.io.*;
import java.lang.reflect.*;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.*;
import org.apache.hadoop.hdfs.server.protocol.*;
import org.apache.hadoop.io.*;

/** Reads Hadoop's RPC, or writes its objects, with Hadoop's own classes; see README.md. */
public class Oracle {
  static final Configuration conf = new Configuration(false);

  public static void main(String[] args) throws Exception {
    if (args[0].equals("objects")) {
      for (int i = 1; i < args.length; i++) object(args[i]);
      return;
    }
    if (args[0].equals("calls")) {
      calls();
      System.exit(0); // its threads would go on
    }
    File[] files = new File(args[1]).listFiles();
    Arrays.sort(files);
    for (File f : files)
      if (f.getName().endsWith("_0")) {
        String s = f.getPath();
        File back = new File(s.substring(0, s.length() - 1) + "1");
        String[] parts = f.getName().split("_");
        connection(parts[1] + ">" + parts[2], read(f), parts[2] + ">" + parts[1], back.exists() ? read(back) : new byte[0]);
      }
  }

  /** One connection: what the client says (Client.writeHeader, sendPing, sendParam), then the answers (Client.receiveResponse). */
  static void connection(String there, byte[] b, String back, byte[] answers) throws Exception {
    Map<Integer, String> asked = new HashMap<Integer, String>();
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(b));
    byte[] greeting = new byte[5];
    in.readFully(greeting);
    boolean secure = greeting[4] == 4;
    String auth = secure ? "\trpc.auth=" + (in.readByte() == 80 ? "SIMPLE" : "other") : "";
    line(there, 0, b.length - in.available(), "rpc greeting", "rpc.version=" + greeting[4] + auth);
    for (boolean first = true; in.available() > 0; first = false) {
      int at = b.length - in.available(), n = in.readInt();
      if (n == -1) {
        line(there, at, 4, "rpc keepalive", "");
        continue;
      }
      int end = at + 4 + n;
      if (first) {
        String fields = "protocol=" + Text.readString(in);
        boolean user = in.readBoolean();
        if (user && secure) {
          fields += "\tuserInfo.effectiveUser=" + in.readUTF();
          if (in.readBoolean()) fields += "\tuserInfo.realUser=" + in.readUTF();
        } else if (user) {
          Text.readString(in); // which UnixUserGroupInformation is
          fields += "\tuserInfo.effectiveUser=" + Text.readString(in);
          for (int g = WritableUtils.readVInt(in); g > 0; g--) Text.readString(in);
        }
        line(there, at, 4 + n, "rpc context", fields);
      } else {
        int id = in.readInt();
        String method = UTF8.readString(in), fields = "rpc.call=" + id;
        asked.put(id, method);
        int args = in.readInt();
        for (int i = 0; i < args; i++) fields += fields("arg" + i, ObjectWritable.readObject(in, conf));
        line(there, at, 4 + n, "rpc " + method, fields);
      }
      if (b.length - in.available() != end) throw new IOException("a message ends elsewhere");
    }
    in = new DataInputStream(new ByteArrayInputStream(answers));
    while (in.available() > 0) {
      int at = answers.length - in.available(), id = in.readInt(), status = in.readInt();
      String type = "rpc " + asked.remove(id), fields = "rpc.call=" + id + "\trpc.method=" + type.substring(4);
      if (status == 0) {
        type += " reply";
        fields += fields("value", ObjectWritable.readObject(in, conf));
      } else {
        type += " error";
        fields += "\trpc.exception=" + WritableUtils.readString(in);
        fields += "\trpc.message=" + WritableUtils.readString(in).split("\n")[0];
      }
      line(back, at, answers.length - in.available() - at, type, fields);
    }
  }

  /** Calls every method of HDFS's protocols over TCP, with arguments and answers that are filled. */
  static void calls() throws Exception {
    String hdfs = "org.apache.hadoop.hdfs.";
    for (String name : new String[] {"protocol.ClientProtocol", "protocol.ClientDatanodeProtocol", "server.protocol.DatanodeProtocol",
        "server.protocol.InterDatanodeProtocol", "server.protocol.NamenodeProtocol"}) {
      final Class<?> protocol = Class.forName(hdfs + name);
      final long version = protocol.getDeclaredField("versionID").getLong(null);
      Object answers = Proxy.newProxyInstance(Oracle.class.getClassLoader(), new Class<?>[] {protocol}, new InvocationHandler() {
        public Object invoke(Object self, Method m, Object[] args) throws Throwable {
          if (m.getName().equals("getProtocolVersion")) return version;
          if (m.getName().equals("renewLease")) throw new IOException("no\nsuch lease");
          count = 0;
          return m.getReturnType() == void.class || m.getName().equals("append") ? null : filled(m.getReturnType(), m.getGenericReturnType());
        }
      });
      org.apache.hadoop.ipc.Server server = org.apache.hadoop.ipc.RPC.getServer(answers, "127.0.0.1", 0, conf);
      server.start();
      Tee tee = new Tee(server.getListenerAddress());
      Object proxy = org.apache.hadoop.ipc.RPC.getProxy(protocol.asSubclass(org.apache.hadoop.ipc.VersionedProtocol.class), version,
          (java.net.InetSocketAddress) tee.socket.getLocalSocketAddress(), conf);
      Method[] methods = protocol.getMethods();
      Arrays.sort(methods, new Comparator<Method>() {
        public int compare(Method a, Method b) { return a.toString().compareTo(b.toString()); }
      });
      for (Method m : methods) {
        if (m.getName().equals("getProtocolVersion")) continue;
        count = 0;
        Object[] args = new Object[m.getParameterTypes().length];
        for (int i = 0; i < args.length; i++) args[i] = filled(m.getParameterTypes()[i], m.getGenericParameterTypes()[i]);
        try {
          m.invoke(proxy, args);
        } catch (InvocationTargetException e) {
          if (!m.getName().equals("renewLease")) throw e;
        }
      }
      Thread.sleep(200);
      for (ByteArrayOutputStream[] said : tee.said) {
        byte[] c = said[0].toByteArray(), s = said[1].toByteArray();
        System.out.println("connection\t" + hex(c) + "\t" + hex(s));
        connection(">", c, "<", s);
      }
    }
  }

  /** Hands connections on, and keeps what was said. 0.20.2 asks for the version on one of its own. */
  static class Tee extends Thread {
    final java.net.ServerSocket socket = new java.net.ServerSocket(0, 9, java.net.InetAddress.getByName("127.0.0.1"));
    final java.net.InetSocketAddress to;
    final List<ByteArrayOutputStream[]> said = new ArrayList<ByteArrayOutputStream[]>();

    Tee(java.net.InetSocketAddress to) throws IOException {
      this.to = to;
      setDaemon(true);
      start();
    }

    public void run() {
      try {
        for (;;) {
          java.net.Socket c = socket.accept(), s = new java.net.Socket(to.getAddress(), to.getPort());
          ByteArrayOutputStream[] both = {new ByteArrayOutputStream(), new ByteArrayOutputStream()};
          said.add(both);
          hand(c.getInputStream(), s.getOutputStream(), both[0]);
          hand(s.getInputStream(), c.getOutputStream(), both[1]);
        }
      } catch (IOException e) {
        e.printStackTrace();
      }
    }

    static void hand(final InputStream in, final OutputStream out, final ByteArrayOutputStream said) {
      Thread t = new Thread() {
        public void run() {
          byte[] b = new byte[4096];
          try {
            for (int n; (n = in.read(b)) > 0; out.write(b, 0, n)) synchronized (said) { said.write(b, 0, n); }
          } catch (IOException e) {
            // it is closed
          }
        }
      };
      t.setDaemon(true);
      t.start();
    }
  }

  static String hex(byte[] bytes) {
    StringBuilder s = new StringBuilder();
    for (byte b : bytes) s.append(String.format("%02x", b));
    return s.toString();
  }

  static byte[] read(File f) throws IOException {
    byte[] b = new byte[(int) f.length()];
    DataInputStream in = new DataInputStream(new FileInputStream(f));
    in.readFully(b);
    in.close();
    return b;
  }

  static void line(String stream, int at, int n, String type, String fields) {
    System.out.println(stream + "\t" + at + "\t" + n + "\t" + type + (fields.isEmpty() ? "" : "\t" + fields));
  }

  /** The fields of an object, each behind a tab. */
  static String fields(String name, Object o) throws Exception {
    StringBuilder more = new StringBuilder();
    String v = value(name, o, more);
    return (v.isEmpty() ? "" : "\t" + name + "=" + v) + more;
  }

  static String value(String name, Object o, StringBuilder more) throws Exception {
    if (o == null) return "";
    if (o instanceof String || o instanceof Number || o instanceof Boolean || o instanceof Enum) return o.toString();
    if (o.getClass().isArray()) {
      StringBuilder list = new StringBuilder();
      for (int i = 0; i < Array.getLength(o); i++) {
        String v = value(name, Array.get(o, i), more);
        if (!v.isEmpty()) list.append(list.length() > 0 ? "," : "").append(v);
      }
      return list.toString();
    }
    if (o instanceof Block) return "blk_" + ((Block) o).getBlockId() + "_" + ((Block) o).getGenerationStamp();
    if (o instanceof LocatedBlock) {
      field(more, name + ".locs", value("", ((LocatedBlock) o).getLocations(), more));
      return value(name, ((LocatedBlock) o).getBlock(), more);
    }
    if (o instanceof LocatedBlocks) {
      field(more, name + ".length", "" + ((LocatedBlocks) o).getFileLength());
      List<Block> blocks = new ArrayList<Block>();
      for (LocatedBlock b : ((LocatedBlocks) o).getLocatedBlocks()) blocks.add(b.getBlock());
      return value(name, blocks.toArray(), more);
    }
    if (o instanceof DatanodeRegistration) field(more, name + ".storageID", ((DatanodeRegistration) o).getStorageID());
    if (o instanceof DatanodeID) return ((DatanodeID) o).getName();
    if (o instanceof FileStatus) {
      field(more, name + ".length", "" + ((FileStatus) o).getLen());
      return ((FileStatus) o).getPath().toString();
    }
    if (o instanceof FsPermission) return String.format("%04o", ((FsPermission) o).toShort());
    if (o instanceof NamespaceInfo) return "" + ((NamespaceInfo) o).getNamespaceID();
    if (o instanceof BlockCommand) {
      field(more, name + ".blocks", value("", ((BlockCommand) o).getBlocks(), more));
      field(more, name + ".targets", value("", ((BlockCommand) o).getTargets(), more));
    }
    String bandwidth = of(o, "bandwidth"); // of a BalancerBandwidthCommand
    field(more, name + ".bandwidth", bandwidth);
    if (o instanceof DatanodeCommand) {
      String kind = o.getClass().getName();
      return kind.contains("$") ? kind.substring(kind.indexOf('$') + 1).toLowerCase() : "action " + ((DatanodeCommand) o).getAction();
    }
    switch (o.getClass().getSimpleName()) {
      case "Text": return o.toString();
      case "ContentSummary": return of(o, "length");
      case "UpgradeStatusReport": return of(o, "version");
      case "CheckpointSignature": return of(o, "editsTime");
      case "ExportedBlockKeys": return "";
      case "Token": return of(o, "kind"); // and nothing that is secret
      case "BlockRecoveryInfo": return value(name, get(o, "block"), more);
      case "BlockLocalPathInfo":
        field(more, name + ".path", of(o, "localBlockPath"));
        return value(name, get(o, "block"), more);
      case "DirectoryListing": return value(name, get(o, "partialListing"), more);
      case "HdfsFileStatus":
        field(more, name + ".length", of(o, "length"));
        return new String((byte[]) get(o, "path"), "UTF-8");
      case "BlocksWithLocations":
        String blocks = "", nodes = "";
        for (BlocksWithLocations.BlockWithLocations b : ((BlocksWithLocations) o).getBlocks()) {
          blocks += (blocks.isEmpty() ? "" : ",") + value(name, b.getBlock(), more);
          for (String node : b.getDatanodes()) nodes += (nodes.isEmpty() ? "" : ",") + node;
        }
        field(more, name + ".locs", nodes);
        return blocks;
    }
    if (o instanceof Writable) throw new IOException("no fields of " + o.getClass());
    return o.toString();
  }

  /** A field that has no method, null if there is none of that name. */
  static Object get(Object o, String name) throws Exception {
    for (Class<?> c = o.getClass(); c != null; c = c.getSuperclass())
      for (Field f : c.getDeclaredFields())
        if (f.getName().equals(name) && !c.getName().startsWith("java.")) {
          f.setAccessible(true);
          return f.get(o);
        }
    return null;
  }

  static String of(Object o, String name) throws Exception {
    Object v = get(o, name);
    return v == null ? "" : v.toString();
  }

  static void field(StringBuilder more, String name, String v) {
    if (!v.isEmpty()) more.append("\t" + name + "=" + v);
  }

  static int count; // of what was filled

  /** Fills an object of a class with numbers that rise, and prints how it is written. */
  static void object(String name) throws Exception {
    count = 0;
    Class<?> c = Class.forName(name);
    Object o = filled(c, c);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ObjectWritable.writeObject(new DataOutputStream(out), o, c, conf);
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(out.toByteArray()));
    ObjectWritable.readObject(in, conf);
    if (in.available() != 0) throw new IOException(name + " is not read to its end");
    System.out.println(name + "\t" + hex(out.toByteArray()) + fields("value", o));
  }

  static Object filled(Class<?> c, Type t) throws Exception {
    count++;
    if (c == boolean.class) return true;
    if (c == byte.class) return (byte) ('a' + count % 26);
    if (c == short.class) return (short) count;
    if (c == int.class) return count;
    if (c == long.class) return (long) count << 33 | count;
    if (c == String.class) return "s" + count;
    if (c == Text.class) return new Text("t" + count);
    if (c == Path.class) return new Path("/p" + count);
    if (c == DatanodeCommand.class) return filled(BlockCommand.class, BlockCommand.class);
    if (c == javax.crypto.SecretKey.class) return new javax.crypto.spec.SecretKeySpec(new byte[] {1, 2, 3}, "HmacSHA1");
    if (c.isEnum()) return c.getEnumConstants()[count % c.getEnumConstants().length];
    if (c.isArray()) {
      Object a = Array.newInstance(c.getComponentType(), 2);
      for (int i = 0; i < 2; i++) Array.set(a, i, filled(c.getComponentType(), c.getComponentType()));
      return a;
    }
    if (c == List.class) {
      Class<?> of = (Class<?>) ((ParameterizedType) t).getActualTypeArguments()[0];
      return new ArrayList<Object>(Arrays.asList(filled(of, of), filled(of, of)));
    }
    Constructor<?> make;
    try {
      make = c.getDeclaredConstructor();
    } catch (NoSuchMethodException e) { // DatanodeCommand.Register and Finalize
      for (Constructor<?> k : c.getDeclaredConstructors())
        if (k.getParameterCount() == 1 && k.isSynthetic()) {
          k.setAccessible(true);
          return k.newInstance((Object) null);
        }
      throw e;
    }
    make.setAccessible(true);
    Object o = make.newInstance();
    List<Class<?>> up = new ArrayList<Class<?>>(); // what it extends is filled first
    for (Class<?> k = c; k != Object.class; k = k.getSuperclass()) up.add(0, k);
    for (Class<?> k : up)
      for (Field f : k.getDeclaredFields()) {
        if (Modifier.isStatic(f.getModifiers()) || f.getType().getName().contains("net.Node") || f.getName().equals("renewer")) continue;
        f.setAccessible(true);
        f.set(o, filled(f.getType(), f.getGenericType()));
      }
    return o;
  }
}
