import java.io.*;
import java.lang.reflect.*;
import java.net.*;
import java.nio.file.*;
import java.util.*;
import java.util.jar.*;

/**
 * Prints the protobuf messages, enumerations and RPC protocols of Hadoop
 * releases as their own jars describe them, merged: a later release wins where
 * names differ. What no protocol and no header below uses is left out.
 *
 *   java HadoopProtos.java LIB... > hadoop_table.txt
 *
 * LIB is the directory of a release's jars, oldest release first. Where the
 * wire type or meaning of a field number differs between releases, a line on
 * stderr says so.
 */
public class HadoopProtos {
    /** Messages that travel outside the methods of a protocol. */
    static final String[] ROOTS = {
        "hadoop.common.RpcRequestHeaderProto", "hadoop.common.RpcResponseHeaderProto", "hadoop.common.RequestHeaderProto",
        "hadoop.common.IpcConnectionContextProto", "hadoop.common.RpcSaslProto",
        "hadoop.yarn.ContainerTokenIdentifierProto", "hadoop.yarn.AMRMTokenIdentifierProto",
        "hadoop.hdfs.OpReadBlockProto", "hadoop.hdfs.OpWriteBlockProto", "hadoop.hdfs.OpTransferBlockProto", "hadoop.hdfs.OpReplaceBlockProto",
        "hadoop.hdfs.OpCopyBlockProto", "hadoop.hdfs.OpBlockChecksumProto", "hadoop.hdfs.OpBlockGroupChecksumProto", "hadoop.hdfs.OpRequestShortCircuitAccessProto",
        "hadoop.hdfs.ReleaseShortCircuitAccessRequestProto", "hadoop.hdfs.ReleaseShortCircuitAccessResponseProto",
        "hadoop.hdfs.ShortCircuitShmRequestProto", "hadoop.hdfs.ShortCircuitShmResponseProto",
        "hadoop.hdfs.BlockOpResponseProto", "hadoop.hdfs.ClientReadStatusProto", "hadoop.hdfs.DNTransferAckProto",
        "hadoop.hdfs.PacketHeaderProto", "hadoop.hdfs.PipelineAckProto", "hadoop.hdfs.DataTransferEncryptorMessageProto",
    };

    static final TreeMap<String, TreeMap<String, String[]>> protocols = new TreeMap<>();
    static final TreeMap<String, TreeMap<Integer, String[]>> messages = new TreeMap<>(), enums = new TreeMap<>();
    static Set<String> files = new HashSet<>();
    static String release;

    static Object call(Object o, String m) throws Exception {
        Method x = o.getClass().getMethod(m);
        x.setAccessible(true);
        return x.invoke(o);
    }

    static void file(Object fd) throws Exception {
        if (!files.add((String) call(fd, "getName"))) return;
        for (Object m : (List<?>) call(fd, "getMessageTypes")) message(m);
        for (Object e : (List<?>) call(fd, "getEnumTypes")) enumeration(e);
    }

    static void put(TreeMap<String, TreeMap<Integer, String[]>> into, String name, int number, String... what) {
        String[] old = into.computeIfAbsent(name, k -> new TreeMap<>()).put(number, what);
        if (old != null && !Arrays.equals(old, what))
            System.err.println(release + ": " + name + " " + number + ": " + String.join(" ", old) + " -> " + String.join(" ", what));
    }

    static void message(Object m) throws Exception {
        String name = (String) call(m, "getFullName");
        messages.computeIfAbsent(name, k -> new TreeMap<>());
        for (Object f : (List<?>) call(m, "getFields")) {
            String type = call(f, "getType").toString().toLowerCase();
            if (type.equals("message") || type.equals("group")) type = (String) call(call(f, "getMessageType"), "getFullName");
            else if (type.equals("enum")) type = (String) call(call(f, "getEnumType"), "getFullName");
            put(messages, name, (Integer) call(f, "getNumber"), (String) call(f, "getName"), type, (Boolean) call(f, "isRepeated") ? "*" : "");
        }
        for (Object n : (List<?>) call(m, "getNestedTypes")) message(n);
        for (Object n : (List<?>) call(m, "getEnumTypes")) enumeration(n);
    }

    static void enumeration(Object e) throws Exception {
        for (Object v : (List<?>) call(e, "getValues"))
            put(enums, (String) call(e, "getFullName"), (Integer) call(v, "getNumber"), (String) call(v, "getName"));
    }

    static void protocol(Class<?> c) throws Exception {
        for (Class<?> i : c.getInterfaces()) {
            if (!i.getSimpleName().equals("BlockingInterface")) continue;
            String name = c.getName();
            for (var a : c.getAnnotations())
                if (a.annotationType().getSimpleName().equals("ProtocolInfo")) name = (String) a.annotationType().getMethod("protocolName").invoke(a);
            // HSClientProtocol has no descriptor: its methods are those of MRClientProtocol.
            if (i.getDeclaringClass() == null) continue;
            Object s = i.getDeclaringClass().getMethod("getDescriptor").invoke(null);
            file(call(s, "getFile"));
            for (Object m : (List<?>) call(s, "getMethods")) {
                String[] what = {(String) call(call(m, "getInputType"), "getFullName"), (String) call(call(m, "getOutputType"), "getFullName")};
                String[] old = protocols.computeIfAbsent(name, k -> new TreeMap<>()).put((String) call(m, "getName"), what);
                if (old != null && !Arrays.equals(old, what)) System.err.println(release + ": " + name + " " + call(m, "getName"));
            }
        }
    }

    static void release(Path lib) throws Exception {
        release = lib.toString();
        files = new HashSet<>();
        List<URL> urls = new ArrayList<>();
        List<String> names = new ArrayList<>();
        try (DirectoryStream<Path> d = Files.newDirectoryStream(lib, "*.jar")) {
            for (Path p : d) {
                urls.add(p.toUri().toURL());
                String jar = p.getFileName().toString();
                if (!jar.startsWith("hadoop-") || jar.endsWith("-tests.jar")) continue;
                try (JarFile j = new JarFile(p.toFile())) {
                    j.stream().map(JarEntry::getName).filter(n -> n.startsWith("org/apache/hadoop/") && !n.contains("thirdparty") && n.endsWith(".class"))
                     .forEach(n -> names.add(n.substring(0, n.length() - 6).replace('/', '.')));
                }
            }
        }
        Collections.sort(names);
        try (URLClassLoader cl = new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader())) {
            for (String n : names) {
                boolean outer = n.contains("Proto") && !n.contains("$"), pb = n.endsWith("PB");
                if (!outer && !pb) continue;
                try {
                    Class<?> c = Class.forName(n, false, cl);
                    if (outer && !pb) {
                        Method m = c.getDeclaredMethod("getDescriptor");
                        if (Modifier.isStatic(m.getModifiers()) && m.getReturnType().getSimpleName().equals("FileDescriptor")) file(m.invoke(null));
                    }
                    if (pb && c.isInterface()) protocol(c);
                } catch (NoSuchMethodException e) { // no generated class
                } catch (Throwable t) { System.err.println(release + ": " + n + ": " + t); }
            }
        }
    }

    static final TreeSet<String> used = new TreeSet<>();

    static void use(String type) {
        if (!messages.containsKey(type)) {
            if (enums.containsKey(type)) used.add(type);
            return;
        }
        if (used.add(type)) for (String[] f : messages.get(type).values()) use(f[1]);
    }

    static String brief(String name) { return name.startsWith("hadoop.") ? name.substring(7) : name; }

    public static void main(String[] args) throws Exception {
        for (String lib : args) release(Path.of(lib));
        for (var p : protocols.values()) for (String[] m : p.values()) { use(m[0]); use(m[1]); }
        for (String r : ROOTS) {
            if (!messages.containsKey(r)) System.err.println("no message " + r);
            use(r);
        }
        StringBuilder out = new StringBuilder();
        protocols.forEach((name, methods) -> {
            out.append("P ").append(name);
            methods.forEach((m, io) -> out.append(';').append(m).append(' ').append(brief(io[0])).append(' ').append(brief(io[1])));
            out.append('\n');
        });
        for (String u : used) {
            boolean isMessage = messages.containsKey(u);
            out.append(isMessage ? "M " : "E ").append(brief(u));
            (isMessage ? messages : enums).get(u).forEach((n, w) -> {
                out.append(';').append(n).append(' ').append(w[0]);
                if (isMessage) out.append(' ').append(brief(w[1])).append(w[2]);
            });
            out.append('\n');
        }
        System.out.print(out);
    }
}
