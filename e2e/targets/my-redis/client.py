import json, os, socket, sys, time

job, seconds, *nodes = sys.argv[1:]  # write 9 n1=192.0.2.1 n2=..
ips = dict(n.split("=") for n in nodes)
start = int(os.environ["NETSPLIT_RUN_START"])
open_to = {}

def ask(node, *words):
    """Asks a Redis over a connection that stays open."""
    if node not in open_to:
        open_to[node] = socket.create_connection((ips[node], 6379), 2).makefile("rwb")
    try:
        open_to[node].write((" ".join(words) + "\r\n").encode())
        open_to[node].flush()
        return answer(open_to[node])
    except OSError:
        del open_to[node]
        raise

def answer(f):
    line = f.readline().decode().strip()
    if not line:
        raise OSError("closed")
    if line[0] == "*":
        return [answer(f) for _ in range(int(line[1:]))]
    return f.read(int(line[1:]) + 2).decode().strip() if line[0] == "$" else line

def say(type, f, node, **more):
    line = {"process": 0, "type": type, "f": f, "node": node, "time": time.time_ns() - start}
    print(json.dumps(line | more), flush=True)

def do(f, node, key, value, *words):
    needs = [{"via": "c1", "from": [node], "count": 1}]
    say("invoke", f, node, key=key, value=value, needs=needs)
    try:
        got = ask(node, *words)
        if got.startswith("-"):
            say("fail", f, node, key=key, value=value, error=got[1:])
        else:
            say("ok", f, node, key=key, value=value)
    except OSError as e:
        say("info", f, node, key=key, value=value, error="NoAnswer " + str(e))

if job == "write":
    master, end = "n1", time.time() + float(seconds)
    for i in range(10**9):
        if time.time() > end:
            break
        if i % 60 == 30:  # an operator makes the next node the master
            master = {"n1": "n2", "n2": "n3", "n3": "n1"}[master]
            do("failover", master, "", master, "REPLICAOF", "NO", "ONE")
            for other in ips.keys() - {master}:
                do("follow", other, "", master, "REPLICAOF", ips[master], "6379")
        do("write", master, f"k{i}", f"v{i}", "SET", f"k{i}", f"v{i}")
        time.sleep(0.05)

if job == "read":
    for node in ips:
        try:
            if ask(node, "ROLE")[0] != "master":
                continue
            for key in ask(node, "KEYS", "*"):
                say("ok", "final-read", node, key=key, value=ask(node, "GET", key))
            say("ok", "final-read-done", node)
        except OSError as e:
            say("info", "final-read-done", node, error="NoAnswer " + str(e))
