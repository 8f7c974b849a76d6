"""Tests of deploy/python against a daemon with the hosts a, b and c, and with n1 and c1 for a target (TestPythonClient)."""

import os
import signal
import subprocess
import sys

import pytest

import netsplit
from netsplit import ns


def pings(to="10.77.0.2"):
    command = ["ip", "netns", "exec", "hand-a", "ping", "-n", "-q", "-i", "0.05", "-c", "5", "-W", "0.5", to]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0


def states(ns):
    return {p["name"]: p["state"] for p in ns.items("/v1/partitions")}


def test_partition(ns):
    assert pings()
    with ns.partition(["a"], ["b", "c"]) as p:
        assert p["state"] == "in_force" and p["shape"] == "partial"
        assert not pings()
    assert pings() and states(ns)[p["name"]] == "healed"


def test_one_group_is_isolated(ns):
    with ns.partition(["a"], name="alone", only=[{"proto": "icmp"}]) as p:
        assert p["shape"] == "isolate" and not pings()
        assert ns.request("GET", "/v1/partitions/alone")["only"] == [{"proto": "icmp"}]
    assert pings()


def test_an_exception_heals(ns):
    for exit in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(exit):
            with ns.partition(["a"], ["b"]):
                raise exit
        assert "in_force" not in states(ns).values()
    assert pings()


def test_a_killed_process_heals_in_time(ns):
    script = "import netsplit, time\nwith netsplit.connect().partition(['a'], ['b'], name='orphan', most='3s'):\n print('cut', flush=True)\n time.sleep(60)\n"
    p = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "cut\n" and not pings()
    p.send_signal(signal.SIGKILL)
    p.wait()
    for _ in range(20):
        if pings():
            return
    pytest.fail(f"not healed: {states(ns)}")


def test_a_partition_of_this_name_is_somebody_elses(ns):
    other = netsplit.connect()
    with other.partition(["a"], ["b"], name="theirs"):
        with pytest.raises(netsplit.Error) as err:
            with ns.partition(["a"], ["b"], name="theirs"):
                pytest.fail("cut twice")
        assert err.value.status == 409 and states(ns)["theirs"] == "in_force" and not pings()


def test_what_cannot_be_is_refused(ns):
    for groups, says in (([["a"], ["nosuch"]], "nosuch"), (["a", "b"], "list of hosts"), ([], "give groups")):
        with pytest.raises(netsplit.Error, match=says):
            with ns.partition(*groups):
                pytest.fail("cut")
    with pytest.raises(netsplit.Error, match="not found"):
        ns.request("GET", "/v1/runs/nosuch")
    for api in ("http://example.org", "https://h:port", "example.org:7070"):
        with pytest.raises(netsplit.Error, match="no address"):
            netsplit.connect(api)
    with pytest.raises(netsplit.Error, match="1.sock"):
        netsplit.connect("127.0.0.1:1")
    with pytest.raises(netsplit.Error, match="nosuch"):
        ns.campaign("nosuch")
    ns.heal("never-there")
    assert pings() and list(ns.runs()) == [] and list(ns.findings()) == []


def test_lists_have_all_pages(ns):
    with ns.partition(["a"], ["b"]):
        pass
    names = [p["name"] for p in ns.items("/v1/partitions", limit=1)]
    assert len(names) == len(set(names)) == len(states(ns)) > 1


def test_reset(ns):
    ns.request("POST", "/v1/partitions", {"name": "left", "shape": "partial", "groups": [["a"], ["b"]]}, wait=10)
    assert ns.reset() == ["left"] and pings()


def test_what_is_left_heals_at_the_end(ns):
    ns.partition(["a"], ["b"], name="open").__enter__()


def test_it_has_healed(ns):
    assert states(ns)["open"] == "healed" and pings()


def test_over_tls():
    api, token, fingerprint = (os.environ["TLS_" + n] for n in ("API", "TOKEN", "FINGERPRINT"))
    assert list(netsplit.connect(api, token, fingerprint).runs()) == []
    with pytest.raises(netsplit.Error, match="nothing was sent"):
        netsplit.connect(api, token, "00" * 32).reset()
    with pytest.raises(netsplit.Error, match="CERTIFICATE_VERIFY_FAILED"):
        netsplit.connect(api, token).reset()
    with pytest.raises(netsplit.Error) as err:
        netsplit.connect(api, "wrong", fingerprint).reset()
    assert err.value.status == 401


def test_plain_http_on_this_machine_takes_a_token():
    api, token = os.environ["PLAIN_API"], os.environ["TLS_TOKEN"]
    assert list(netsplit.connect(api, token).runs()) == []
    with pytest.raises(netsplit.Error) as err:
        netsplit.connect(api, "wrong").reset()
    assert err.value.status == 401
    with pytest.raises(netsplit.Error, match="fingerprint needs TLS"):
        netsplit.connect(api, token, "00" * 32)


def test_root_trusts_the_owner_of_a_closed_folder(tmp_path):
    os.chown(tmp_path, 1234, 1234)
    for mode, uid, want in ((0o755, 1234, True), (0o755, 1235, False), (0o775, 1234, False), (0o757, 1234, False)):
        os.chmod(tmp_path, mode)
        assert netsplit._alone(uid, str(tmp_path)) == want


def test_a_shape_that_needs_no_group(ns):
    with pytest.raises(netsplit.Error, match="give groups"), ns.partition():
        pass
    with ns.partition(shape="ring") as p:
        assert p["shape"] == "ring" and len(p["groups"]) == 1


def test_campaign_and_reports(ns):
    seen = []
    c = ns.campaign(os.environ["TARGET"], progress=seen.append, timeout=60, strategy="clean", clean=1)
    assert c["state"] == "done" and seen[0]["id"] == c["id"]
    (run,) = ns.runs(campaign=c["id"])
    assert f"<h1>{c['id']}</h1>" in ns.campaign_report(c["id"]) and f"<h1>{run['id']}</h1>" in ns.report(run["id"])
    with pytest.raises(netsplit.Error, match="nosuch") as err:
        ns.campaign_report("nosuch")
    assert err.value.status == 404


def test_a_paused_campaign_is_waited_for_in_time(ns, caplog):
    seen = []

    def pause(c):
        seen.append(c["state"])
        if len(seen) == 1:
            ns.request("POST", f"/v1/campaigns/{c['id']}/pause", wait=10)

    with pytest.raises(netsplit.Error, match="was paused, 0 runs done"):
        ns.campaign(os.environ["TARGET"], progress=pause, timeout=2, strategy="clean", clean=2)
    (c,) = (c for c in ns.items("/v1/campaigns") if c["state"] != "done")
    assert c["state"] == "cancelled" and "paused" in seen
    assert [r.getMessage() for r in caplog.records] == [f"campaign {c['id']} is paused after 0 runs; to continue it: netsplit campaign resume {c['id']}"]


def test_a_campaign_goes_on_when_it_is_resumed(ns):
    def pause(c):
        path = f"/v1/campaigns/{c['id']}/"
        if c["state"] == "paused":
            ns.request("POST", path + "resume")
        elif not paused:
            paused.append(ns.request("POST", path + "pause", wait=10))

    paused = []
    assert ns.campaign(os.environ["TARGET"], progress=pause, timeout=60, strategy="clean", clean=1)["state"] == "done"
    assert paused[0]["state"] == "paused"
