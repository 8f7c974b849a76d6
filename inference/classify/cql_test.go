package classify

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCQLStatements(t *testing.T) {
	for _, c := range []struct{ in, kind, table string }{
		{"SELECT * FROM ks.t WHERE k=1", "SELECT", "ks.t"},
		{"select \"If\", from_x from \"Ks\".\"T\" where k = 'insert into x'", "SELECT", "Ks.T"},
		{"INSERT INTO t (k, v) VALUES (1, 'IF')", "INSERT", ".t"},
		{"INSERT INTO t (k) VALUES (1) IF NOT EXISTS", "INSERT IF", ".t"},
		{"  -- note\n/* x */ update KS.T set v='it''s if' where k=1", "UPDATE", "ks.t"},
		{"UPDATE t SET v=$$ if $$ WHERE k=1 IF v = 2", "UPDATE IF", ".t"},
		{"DELETE v FROM t WHERE k=1", "DELETE", ".t"},
		{"BEGIN UNLOGGED BATCH INSERT INTO t (k) VALUES (1) APPLY BATCH", "BATCH", "."},
		{"CREATE KEYSPACE IF NOT EXISTS ks WITH x", "CREATE KEYSPACE", "ks."},
		{"CREATE SCHEMA ks", "CREATE KEYSPACE", "ks."},
		{"CREATE COLUMNFAMILY ks.t (k int)", "CREATE TABLE", "ks.t"},
		{"CREATE CUSTOM INDEX i ON ks.t (v)", "CREATE INDEX", "ks.t"},
		{"CREATE INDEX ON t (v)", "CREATE INDEX", ".t"},
		{"CREATE MATERIALIZED VIEW v AS SELECT 1", "CREATE VIEW", "."},
		{"CREATE OR REPLACE FUNCTION f()", "CREATE FUNCTION", "."},
		{"DROP TABLE IF EXISTS t", "DROP TABLE", ".t"},
		{"ALTER TABLE t ADD w int", "ALTER TABLE", ".t"},
		{"TRUNCATE TABLE ks.t", "TRUNCATE", "ks.t"},
		{"TRUNCATE t", "TRUNCATE", ".t"},
		{"USE \"a\"\"b\"", "USE", `a"b.`},
		{"LIST ROLES", "LIST ROLES", "."},
		{"CREATE nonsense", "CREATE", "."},
		{"SELEC 1", "other", "."},
		{"", "other", "."},
		{"SELECT 'open", "SELECT", "."},
		{"SELECT x FROM \"open", "SELECT", "."},
		{"CREATE INDEX", "CREATE INDEX", "."},
	} {
		st := cqlStatement(c.in)
		if got := st.keyspace + "." + st.table; st.kind != c.kind || got != c.table {
			t.Errorf("%q: %q of %q, want %q of %q", c.in, st.kind, got, c.kind, c.table)
		}
	}
}

// cqlMsg is an envelope; versions below 3 have a stream of one byte.
func cqlMsg(version byte, flags byte, stream int, opcode byte, body string) string {
	b := []byte{version, flags}
	if version&0x7f >= 3 {
		b = append(b, byte(stream>>8))
	}
	b = append(b, byte(stream), opcode)
	return string(binary.BigEndian.AppendUint32(b, uint32(len(body)))) + body
}

func cqlLong(s string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func cqlShort(s string) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s
}

func TestCQLConversations(t *testing.T) {
	query := func(v byte, stream int, q string, cl byte) string {
		return cqlMsg(v, 0, stream, 7, cqlLong(q)+"\x00"+string(cl)+map[bool]string{true: "", false: "\x00"}[v == 1])
	}
	void, rows := "\x00\x00\x00\x01", "\x00\x00\x00\x02"
	unavailable := "\x00\x00\x10\x00" + cqlShort("Cannot achieve") + "\x00\x04\x00\x00\x00\x02\x00\x00\x00\x01"
	startup5 := cqlMsg(5, 0, 0, 1, "\x00\x01"+cqlShort("CQL_VERSION")+cqlShort("3.0.0"))
	big := cqlMsg(5, 0, 3, 7, cqlLong("INSERT INTO t (k) VALUES ('"+strings.Repeat("x", 300_000)+"')")+"\x00\x04\x00\x00\x00\x00")
	for _, c := range []struct {
		name  string
		turns []turn
		want  []string
	}{
		{"out of order", []turn{{0, query(4, 1, "SELECT 1 FROM a", 1) + query(4, 2, "INSERT INTO a (k) VALUES (1)", 4)}, {1, cqlMsg(0x84, 0, 2, 0, unavailable) + cqlMsg(0x84, 0, 1, 8, rows)}},
			[]string{"> cql QUERY SELECT", "> cql QUERY INSERT", "< cql ERROR UNAVAILABLE QUERY INSERT", "< cql RESULT QUERY SELECT"}},
		{"prepared", []turn{{0, cqlMsg(4, 0, 1, 9, cqlLong("DELETE FROM a WHERE k=?"))}, {1, cqlMsg(0x84, 0, 1, 8, "\x00\x00\x00\x04"+cqlShort("id"))},
			{0, cqlMsg(4, 0, 1, 10, cqlShort("id")+"\x00\x05\x00") + cqlMsg(4, 0, 2, 10, cqlShort("other")+"\x00\x05\x00") + cqlMsg(4, 0, 3, 13, "\x00\x00\x02\x00"+cqlLong("DELETE FROM b WHERE k=1")+"\x00\x00\x01"+cqlShort("id")+"\x00\x00\x00\x06\x00")},
			{1, cqlMsg(0x84, 0, 1, 8, void) + cqlMsg(0x84, 0, 3, 8, void)}},
			[]string{"> cql PREPARE DELETE", "< cql RESULT PREPARE DELETE", "> cql EXECUTE DELETE", "> cql EXECUTE", "> cql BATCH DELETE", "< cql RESULT EXECUTE DELETE", "< cql RESULT BATCH DELETE"}},
		{"versions 1 and 2", []turn{{0, query(1, 1, "USE a", 1) + query(2, 2, "DROP TABLE b", 1)}, {1, cqlMsg(0x81, 0, 1, 8, "\x00\x00\x00\x03"+cqlShort("a")) + cqlMsg(0x82, 0, 2, 8, "\x00\x00\x00\x05"+cqlShort("DROPPED")+cqlShort("a")+cqlShort("b"))}},
			[]string{"> cql QUERY USE", "> cql QUERY DROP TABLE", "< cql RESULT QUERY USE", "< cql RESULT QUERY DROP TABLE"}},
		{"events", []turn{{1, cqlMsg(0x84, 0, -1, 12, cqlShort("STATUS_CHANGE")+cqlShort("DOWN")+"\x04\x0a\x00\x00\x03\x00\x00\x23\x52") + cqlMsg(0x84, 0, -1, 12, cqlShort("SCHEMA_CHANGE")+cqlShort("CREATED")+cqlShort("TABLE")+cqlShort("k")+cqlShort("t")) +
			cqlMsg(0x84, 0, -1, 12, cqlShort("TOPOLOGY_CHANGE")+cqlShort("secret")) + cqlMsg(0x84, 0, -1, 12, cqlShort("secret"))}},
			[]string{"< cql EVENT STATUS_CHANGE DOWN", "< cql EVENT SCHEMA_CHANGE CREATED TABLE", "< cql EVENT TOPOLOGY_CHANGE other", "< cql EVENT other"}},
		{"version 5", []turn{{0, cqlMsg(5, 0, 0, 5, "")}, {1, cqlMsg(0x85, 0, 0, 6, "\x00\x00")}, {0, startup5}, {1, cqlMsg(0x85, 0, 0, 2, "")},
			{0, frame40(cassCRC, true, query5(1, "SELECT 1 FROM a")+query5(2, "TRUNCATE a")) + frame40(cassCRC, false, big[:131071]) + frame40(cassCRC, false, big[131071:262142]) + frame40(cassCRC, false, big[262142:])},
			{1, frame40(cassCRC, true, cqlMsg(0x85, 0, 2, 8, void)+cqlMsg(0x85, 0, 3, 8, void))}},
			[]string{"> cql OPTIONS", "< cql SUPPORTED OPTIONS", "> cql STARTUP", "< cql READY STARTUP", "> cql QUERY SELECT", "> cql QUERY TRUNCATE", "> cql QUERY INSERT", "> cql QUERY INSERT more", "> cql QUERY INSERT end",
				"< cql RESULT QUERY TRUNCATE", "< cql RESULT QUERY INSERT"}},
		{"version 5 lz4, seen late", []turn{{0, "abc" + frame40(cassLZ4, true, query5(1, "SELECT 1 FROM a WHERE x = '"+strings.Repeat("y", 400)+"'"))}, {1, frame40(cassLZ4, true, cqlMsg(0x85, 0, 1, 8, rows+strings.Repeat("\x00", 400)))}},
			[]string{"> unknown", "> cql QUERY SELECT", "< cql RESULT QUERY SELECT"}},
		{"version 5 without frames", []turn{{0, cqlMsg(5, 0x10, 0, 1, "\x00\x00") + cqlMsg(5, 0x10, 1, 7, cqlLong("USE a")+"\x00\x01\x00\x00\x00\x00")}, {1, cqlMsg(0x85, 0x10, 0, 2, "") + cqlMsg(0x85, 0x10, 1, 8, void)}},
			[]string{"> cql STARTUP", "> cql QUERY USE", "< cql READY STARTUP", "< cql RESULT QUERY USE"}},
		{"warning, payload and trace come first", []turn{{0, query(4, 1, "SELECT 1 FROM a", 1)}, {1, cqlMsg(0x84, 0x0e, 1, 0, strings.Repeat("t", 16)+"\x00\x01"+cqlShort("careful")+"\x00\x01"+cqlShort("k")+cqlLong("v")+unavailable)}},
			[]string{"> cql QUERY SELECT", "< cql ERROR UNAVAILABLE QUERY SELECT"}},
		{"answer without request, unknown error", []turn{{1, cqlMsg(0x84, 0, 9, 0, "\x00\x00\x77\x77"+cqlShort("?")) + cqlMsg(0x84, 0, 9, 8, void)}},
			[]string{"< cql ERROR other unmatched", "< cql RESULT unmatched"}},
		{"not CQL", []turn{{0, "GET / HTTP/1.1\r\n"}}, []string{"> unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, types(play(newCQL(), c.turns))); diff != "" {
				t.Errorf("types (-want +got):\n%s", diff)
			}
		})
	}
}

func query5(stream int, q string) string {
	return cqlMsg(5, 0, stream, 7, cqlLong(q)+"\x00\x04\x00\x00\x00\x10\x00\x08")
}

func TestCQLFields(t *testing.T) {
	us := play(newCQL(), []turn{{0, cqlMsg(4, 0, 1, 7, cqlLong("INSERT INTO ks.t (k) VALUES (?) IF NOT EXISTS")+"\x00\x04\x11\x00\x01\x00\x00\x00\x01x\x00\x08")},
		{1, cqlMsg(0x84, 0, 1, 0, "\x00\x00\x11\x00"+cqlShort("slow")+"\x00\x04\x00\x00\x00\x01\x00\x00\x00\x02"+cqlShort("CAS"))}})
	for i, want := range []map[string]string{
		{"keyspace": "ks", "table": "t", "consistency": "QUORUM", "serial_consistency": "SERIAL", "query": "INSERT INTO ks.t (k) VALUES (?) IF NOT EXISTS"},
		{"request": "QUERY INSERT IF", "code": "0x1100", "error": "slow", "consistency": "QUORUM", "received": "1", "required": "2", "write_type": "CAS"},
	} {
		for name, v := range want {
			if got := field(us[i], name); got != v {
				t.Errorf("%s: %s is %q, want %q", us[i].Type, name, got, v)
			}
		}
	}
}
