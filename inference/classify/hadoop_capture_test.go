package classify_test

import (
	"bufio"
	"bytes"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"netsplit/e2e/need"
	"netsplit/inference/classify"
	"netsplit/model"
)

// hadoopPorts are the ports of the captures' clusters; those of
// ApplicationMasters and tasks are not declared.
var hadoopPorts = map[uint16]string{
	8020: classify.NameHadoopRPC, 9867: classify.NameHadoopRPC, 8485: classify.NameHadoopRPC,
	8030: classify.NameHadoopRPC, 8031: classify.NameHadoopRPC, 8032: classify.NameHadoopRPC, 8033: classify.NameHadoopRPC,
	8040: classify.NameHadoopRPC, 8041: classify.NameHadoopRPC,
	9866: classify.NameHDFSData,
	8480: classify.NameHTTP, 9870: classify.NameHTTP, 50070: classify.NameHTTP, 13562: classify.NameHTTP,
}

// hadoopRead reads a capture of testdata/hadoop.
func hadoopRead(t *testing.T, name string) []model.Message {
	t.Helper()
	var hosts []model.TestbedHost
	for i := byte(1); i <= 6; i++ {
		hosts = append(hosts, model.TestbedHost{Name: model.NodeID("n" + strconv.Itoa(int(i))), IP: netip.AddrFrom4([4]byte{10, 0, 0, i})})
	}
	return messagesOf(t, framesOf(t, "hadoop", name+".pcap"), hadoopPorts, hosts...)
}

// has is a field that some message of a type must have: its value, or what it
// starts with where the value ends in "...".
type has struct{ typ, field, value string }

// hadoopCaptures are real clusters; see testdata/hadoop/README.md.
var hadoopCaptures = []struct {
	name  string
	count map[string]int
	has   []has
}{
	{"hdfs-3.3.0", map[string]int{
		"rpc greeting": 14, "rpc registerDatanode": 3, "rpc registerDatanode reply": 3, "rpc rename": 3, "http GET /fsck": 1,
	}, []has{
		{"rpc versionRequest reply", "info.state", "ACTIVE"},
		{"rpc registerDatanode", "registration.datanodeID", "10.0.0.3:9866"},
		{"rpc registerDatanode", "registration.datanodeID.hostName", "n5"},
		{"rpc sendHeartbeat", "registration.datanodeID", "10.0.0.4:9866"},
		{"rpc sendHeartbeat", "reports", "storageUuid=DS-..."},
		{"rpc sendHeartbeat reply", "haStatus.state", "ACTIVE"},
		{"rpc addBlock reply", "block.b", "blk_1073741825_1001"},
		{"rpc addBlock reply", "block.locs", "10.0.0...."},
		{"rpc getBlockLocations reply", "locations.blocks", "blk_1073741825_1001 b.poolId=BP-..."},
		{"rpc complete", "last", "blk_1073741827_1003"},
		{"rpc blockReceivedAndDeleted", "blocks", "storageUuid=DS-..."},
		{"rpc getDatanodeReport reply", "di", "10.0.0...."},
		{"rpc mkdirs", "src", "/d"},
		{"rpc context", "protocol", "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol"},
		{"hdfs WRITE_BLOCK PIPELINE_SETUP_CREATE", "block", "blk_1073741825_1001"},
		{"hdfs WRITE_BLOCK PIPELINE_SETUP_CREATE", "stage", "PIPELINE_SETUP_CREATE"},
		{"hdfs WRITE_BLOCK PIPELINE_SETUP_CREATE", "targets", "10.0.0...."},
		{"hdfs ack", "reply", "SUCCESS,SUCCESS"},
		{"hdfs packet last", "op.block", "blk_1073741825_1001"},
		{"hdfs read status", "status", "CHECKSUM_OK"},
	}},
	{"hdfs-2.7.1", map[string]int{
		"rpc registerDatanode": 3, "rpc registerDatanode reply": 3, "rpc rename": 3, "http GET /fsck": 1,
	}, []has{
		{"rpc versionRequest reply", "info.softwareVersion", "2.7.1"},
		{"rpc sendHeartbeat", "registration.datanodeID", "10.0.0.4:9866"},
		{"rpc sendHeartbeat reply", "haStatus.state", "ACTIVE"},
		{"rpc blockReport", "reports", "storage.storageUuid=DS-..."},
		{"rpc addBlock reply", "block.b", "blk_1073741825_1001"},
		{"hdfs WRITE_BLOCK PIPELINE_SETUP_CREATE", "block", "blk_1073741825_1001"},
		{"hdfs ack", "reply", "SUCCESS,SUCCESS"},
	}},
	{"hdfs-3.4.1", map[string]int{
		"rpc registerDatanode": 3, "rpc rename": 3, "hdfs WRITE_BLOCK reply ERROR": 3,
	}, []has{
		{"rpc versionRequest reply", "info.softwareVersion", "3.4.1"},
		{"rpc sendHeartbeat reply", "haStatus.state", "ACTIVE"},
		{"rpc addBlock reply", "block.b", "blk_1073741825_1001"},
		{"hdfs WRITE_BLOCK reply ERROR", "firstBadLink", "10.0.0.5:9866"},
		{"hdfs WRITE_BLOCK PIPELINE_SETUP_APPEND_RECOVERY", "stage", "PIPELINE_SETUP_APPEND_RECOVERY"},
	}},
	{"hdfs-ha-3.3.0", map[string]int{
		"rpc transitionToActive": 2, "rpc transitionToStandby": 1, "rpc newEpoch": 6, "rpc newEpoch reply": 6, "rpc acceptRecovery": 3, "http GET /getJournal": 4,
	}, []has{
		{"rpc getServiceStatus reply", "state", "STANDBY"},
		{"rpc transitionToActive", "reqInfo.reqSource", "REQUEST_BY_USER"},
		{"rpc sendHeartbeat reply", "haStatus.state", "ACTIVE"},
		{"rpc sendHeartbeat reply", "haStatus.state", "STANDBY"},
		{"rpc getJournalState reply", "lastPromisedEpoch", "1"},
		{"rpc newEpoch", "epoch", "2"},
		{"rpc journal QJournalProtocol", "reqInfo.epoch", "1"},
		{"rpc journal QJournalProtocol", "numTxns", "1"},
		{"rpc startLogSegment QJournalProtocol", "txid", "1"},
		{"rpc prepareRecovery reply", "lastWriterEpoch", "1"},
		{"rpc acceptRecovery", "stateToAccept.isInProgress", "false"},
		{"rpc getEditLogManifest QJournalProtocol reply", "fromURL", "http://n..."},
		{"rpc blockReport", "reports", "storage.storageUuid=DS-..."},
		{"http GET /getJournal", "query.jid", "ns"},
	}},
	{"yarn-2.10.0", map[string]int{
		"rpc registerNodeManager": 2, "rpc registerApplicationMaster": 1, "rpc getTask": 1, "rpc canCommit reply": 1, "http GET /mapOutput": 1,
	}, []has{
		{"rpc registerNodeManager", "node_id", "n2:8041"},
		{"rpc registerNodeManager reply", "nodeAction", "NORMAL"},
		{"rpc nodeHeartbeat", "node_status.node_id", "n3:8041"},
		{"rpc nodeHeartbeat", "node_status.containersStatuses", "container_1795294628366_0001_01_000001 state=C_RUNNING..."},
		{"rpc nodeHeartbeat reply", "nodeAction", "NORMAL"},
		{"rpc nodeHeartbeat reply", "applications_to_cleanup", "application_1795294628366_0001\n"},
		{"rpc allocate reply", "allocated_containers", "container_1795294628366_0001_01_00000..."},
		{"rpc allocate", "rpc.attempt", "appattempt_1795294628366_0001_000001"},
		{"rpc startContainers", "start_container_request", "container_1795294628366_0001_01_000001..."},
		{"rpc stopContainers", "container_id", "container_1795294628366_0001_01_000004\n"},
		{"rpc getApplicationReport reply", "application_report.yarn_application_state", "ACCEPTED"},
		{"rpc finishApplicationMaster", "final_application_status", "APP_SUCCEEDED"},
		{"rpc getClusterNodes reply", "nodeReports", "n2:8041 httpAddress=n2:8042..."},
		{"rpc sasl NEGOTIATE", "auths", "method=TOKEN mechanism=DIGEST-MD5 serverId=default\n"},
		{"rpc getTask", "jvm", "jvm_1795294628366_0001_r_000004"},
		{"rpc getTask reply", "task", "attempt_1795294628366_0001_r_000000_0"},
		{"rpc statusUpdate", "status.state", "RUNNING"},
		{"rpc commitPending", "status.state", "COMMIT_PENDING"},
		{"http reply 200", "request", "GET /mapOutput"},
	}},
}

func TestHadoopCaptures(t *testing.T) {
	for _, c := range hadoopCaptures {
		t.Run(c.name, func(t *testing.T) {
			count := map[string]int{}
			open := slices.Clone(c.has)
			total, bad := 0, 0
			for _, m := range hadoopRead(t, c.name) {
				if m.Bytes == 0 {
					continue
				}
				total++
				count[m.Type]++
				if m.Type == model.TypeUnknown || strings.Contains(m.Type, "unmatched") || strings.HasPrefix(m.Type, "tcp data") {
					bad++
					t.Errorf("%s at %d: %d bytes are %s", m.Stream, m.Offset, m.Bytes, m.Type)
				}
				open = slices.DeleteFunc(open, func(h has) bool {
					v, ok := m.Field(h.field)
					if start, part := strings.CutSuffix(h.value, "..."); part {
						return m.Type == h.typ && strings.HasPrefix(v, start)
					}
					return m.Type == h.typ && ok && v == h.value
				})
			}
			t.Logf("%d messages of %d types, %d not typed", total, len(count), bad)
			if total < 150 {
				t.Errorf("only %d messages", total)
			}
			for _, h := range open {
				t.Errorf("no %s has %s = %q", h.typ, h.field, h.value)
			}
			for typ, n := range c.count {
				if count[typ] != n {
					t.Errorf("%d times %s, want %d", count[typ], typ, n)
				}
			}
			// Every call is answered in these captures, or its connection ended.
			for typ, n := range count {
				name, ok := strings.CutSuffix(typ, " reply")
				if ok && strings.HasPrefix(typ, "rpc ") && count[name] < n {
					t.Errorf("%d answers to %d of %s", n, count[name], name)
				}
			}
		})
	}
}

// TestHadoopEqualsTsharks compares what tshark 4.0 knows of these protocols:
// greetings, writes and reads of blocks, HTTP requests and answers. The rest
// of its HDFS dissectors is about Hadoop 1.
func TestHadoopEqualsTsharks(t *testing.T) {
	need.Program(t, "tshark", "tshark")
	codes := map[string]string{"80": "WRITE_BLOCK", "81": "READ_BLOCK"}
	for _, c := range hadoopCaptures {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"-r", filepath.Join("testdata", "hadoop", c.name+".pcap"), "-T", "fields", "-E", "separator=;",
				"-e", "hdfs.type", "-e", "hdfsdata.cmd", "-e", "http.request.method", "-e", "http.request.uri", "-e", "http.response.code"}
			for port, d := range hadoopPorts {
				if name := map[string]string{classify.NameHadoopRPC: "hdfs", classify.NameHDFSData: "hdfsdata", classify.NameHTTP: "http"}[d]; name != "" {
					args = append(args, "-d", "tcp.port=="+strconv.Itoa(int(port))+","+name)
				}
			}
			out, err := exec.Command("tshark", args...).Output()
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]int{}
			for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
				f := strings.Split(s.Text(), ";")
				if len(f) != 5 {
					continue
				}
				if f[0] == "hrpc" {
					want["rpc greeting"]++
				}
				if op := codes[f[1]]; op != "" {
					want["hdfs "+op]++
				}
				if f[2] != "" {
					path, _, _ := strings.Cut(f[3], "?")
					want["http "+f[2]+" "+path]++
				}
				if f[4] != "" {
					want["http reply "+f[4]]++
				}
			}
			got := map[string]int{}
			for _, m := range hadoopRead(t, c.name) {
				words := strings.Fields(m.Type)
				_, known := hadoopPorts[m.ToPort] // tshark reads greetings on ports it was told only
				switch {
				case m.Type == "rpc greeting" && known, strings.HasPrefix(m.Type, "http "):
					got[m.Type]++
				case words[0] == "hdfs" && slices.Contains([]string{"WRITE_BLOCK", "READ_BLOCK"}, words[1]) && !strings.Contains(m.Type, "reply"):
					got["hdfs "+words[1]]++
				}
			}
			for typ, n := range want {
				if got[typ] != n {
					t.Errorf("%d times %s, tshark says %d", got[typ], typ, n)
				}
			}
			for typ, n := range got {
				if want[typ] != n {
					t.Errorf("%d times %s, tshark says %d", n, typ, want[typ])
				}
			}
			t.Log(want)
		})
	}
}
