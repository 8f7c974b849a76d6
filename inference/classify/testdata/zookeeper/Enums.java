import java.lang.reflect.*;
import java.util.*;

/**
 * Prints the numbers of ZooKeeper's protocols as the classes of one release
 * define them: "set<TAB>name<TAB>number", sorted by set and number. See README.md.
 */
public class Enums {
    static final TreeMap<String, TreeMap<Long, TreeSet<String>>> sets = new TreeMap<>();

    static void put(String set, String name, long n) {
        sets.computeIfAbsent(set, k -> new TreeMap<>()).computeIfAbsent(n, k -> new TreeSet<>()).add(name);
    }

    static void constants(String set, String cls, String skip) throws Exception {
        Class<?> c;
        try {
            c = Class.forName(cls, false, Enums.class.getClassLoader());
        } catch (ClassNotFoundException e) {
            return;
        }
        for (Field f : c.getDeclaredFields()) {
            int m = f.getModifiers();
            if (!Modifier.isStatic(m) || !Modifier.isFinal(m) || f.getName().matches(skip)) continue;
            if (f.getType() != int.class && f.getType() != long.class) continue;
            f.setAccessible(true);
            put(set, f.getName(), ((Number) f.get(null)).longValue());
        }
    }

    static void enums(String set, String cls, String method) throws Exception {
        for (Object e : Class.forName(cls).getEnumConstants()) {
            put(set, e.toString(), method == null ? ((Enum<?>) e).ordinal() : ((Number) e.getClass().getMethod(method).invoke(e)).longValue());
        }
    }

    static void commands(String cls, String field) throws Exception {
        try {
            Field f = Class.forName(cls).getDeclaredField(field);
            f.setAccessible(true);
            for (Map.Entry<?, ?> e : ((Map<?, ?>) f.get(null)).entrySet()) {
                put("4lw", e.getValue().toString(), ((Number) e.getKey()).longValue());
            }
        } catch (ClassNotFoundException | NoSuchFieldException e) {
            return;
        }
    }

    public static void main(String[] args) throws Exception {
        String p = "org.apache.zookeeper.", q = p + "server.quorum.";
        constants("opcode", p + "ZooDefs$OpCode", "");
        constants("zab", q + "Leader", "(?!DIFF|TRUNC|SNAP|OBSERVERINFO|NEWLEADER|FOLLOWERINFO|UPTODATE|LEADERINFO|ACKEPOCH|REQUEST|PROPOSAL|ACK|COMMIT|PING|REVALIDATE|SYNC|INFORM|COMMITANDACTIVATE|INFORMANDACTIVATE|SKIP).*");
        for (Object e : Class.forName(p + "KeeperException$Code").getEnumConstants()) {
            put("error", ((Enum<?>) e).name(), ((Number) e.getClass().getMethod("intValue").invoke(e)).longValue());
        }
        enums("event", p + "Watcher$Event$EventType", "getIntValue");
        enums("keeperstate", p + "Watcher$Event$KeeperState", "getIntValue");
        enums("serverstate", q + "QuorumPeer$ServerState", null);
        constants("notification", q + "FastLeaderElection$Notification", "");
        constants("cnx", q + "QuorumCnxManager", "(?!PROTOCOL_VERSION.*|maxBuffer).*");
        commands(p + "server.ServerCnxn", "cmd2String");
        commands(p + "server.command.FourLetterCommands", "cmd2String");
        sets.forEach((s, m) -> m.forEach((n, names) -> names.forEach(name -> System.out.println(s + "\t" + name + "\t" + n))));
    }
}
