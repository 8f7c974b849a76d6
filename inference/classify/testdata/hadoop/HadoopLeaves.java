import java.lang.reflect.*;
import java.nio.file.*;
import java.util.*;
import java.util.jar.*;

/**
 * Reads messages with the classes of a Hadoop release and prints what is in
 * them: the message's name and bytes, as they came in, then path=value for
 * each number, text and enumeration outside of lists of messages, percent
 * encoded, tab separated.
 *
 *   java -cp 'LIB/*' HadoopLeaves.java LIB < "NAME HEX" lines > leaves.tsv
 */
public class HadoopLeaves {
    static final Map<String, Object> types = new HashMap<>();
    static ClassLoader cl = HadoopLeaves.class.getClassLoader();

    static Object call(Object o, String m) throws Exception {
        Method x = o.getClass().getMethod(m);
        x.setAccessible(true);
        return x.invoke(o);
    }

    static void message(Object d) throws Exception {
        types.put((String) call(d, "getFullName"), d);
        for (Object n : (List<?>) call(d, "getNestedTypes")) message(n);
    }

    static String encode(String s) { return s.replace("%", "%25").replace("\t", "%09").replace("\n", "%0A").replace("\r", "%0D"); }

    static void leaves(Object m, String prefix, StringBuilder out) throws Exception {
        for (Map.Entry<?, ?> e : ((Map<?, ?>) call(m, "getAllFields")).entrySet()) {
            String type = call(e.getKey(), "getJavaType").toString();
            boolean list = (Boolean) call(e.getKey(), "isRepeated");
            String name = prefix + call(e.getKey(), "getName");
            if (type.equals("BYTE_STRING") || list && type.equals("MESSAGE")) continue;
            if (type.equals("MESSAGE")) {
                leaves(e.getValue(), name + ".", out);
                continue;
            }
            StringBuilder v = new StringBuilder();
            for (Object x : list ? (List<?>) e.getValue() : List.of(e.getValue()))
                v.append(v.length() > 0 ? "," : "").append(type.equals("ENUM") ? call(x, "getName") : x.toString());
            out.append('\t').append(name).append('=').append(encode(v.toString()));
        }
    }

    public static void main(String[] args) throws Exception {
        try (DirectoryStream<Path> d = Files.newDirectoryStream(Path.of(args[0]), "hadoop-*.jar")) {
            for (Path p : d) {
                if (p.toString().endsWith("-tests.jar")) continue;
                try (JarFile j = new JarFile(p.toFile())) {
                    for (JarEntry e : Collections.list(j.entries())) {
                        String n = e.getName();
                        if (!n.startsWith("org/apache/hadoop/") || n.contains("thirdparty") || n.contains("$") || !n.contains("Proto") || !n.endsWith(".class")) continue;
                        try {
                            Object fd = Class.forName(n.substring(0, n.length() - 6).replace('/', '.'), false, cl).getDeclaredMethod("getDescriptor").invoke(null);
                            for (Object m : (List<?>) call(fd, "getMessageTypes")) message(m);
                        } catch (ReflectiveOperationException | LinkageError | ClassCastException x) { // no generated class
                        }
                    }
                }
            }
        }
        for (String line : new String(System.in.readAllBytes()).split("\n")) {
            String[] w = line.split(" ");
            Object d = types.get(w[0]);
            if (d == null) throw new Exception("no message " + w[0]);
            Class<?> dynamic = cl.loadClass(d.getClass().getPackageName() + ".DynamicMessage");
            byte[] b = w.length > 1 ? HexFormat.of().parseHex(w[1]) : new byte[0];
            Object m = dynamic.getMethod("parseFrom", d.getClass(), byte[].class).invoke(null, d, b);
            StringBuilder out = new StringBuilder(w[0] + "\t" + (w.length > 1 ? w[1] : ""));
            leaves(m, "", out);
            System.out.println(out);
        }
    }
}
