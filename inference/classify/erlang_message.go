package classify

import (
	"strings"

	"netsplit/model"
)

// erlOps are control messages, by number; those with a trace token have the name of the one
// without (Distribution Protocol, Protocol between Connected Nodes).
var erlOps = map[string]string{
	"1": "link", "2": "send", "3": "exit", "4": "unlink", "5": "node_link", "6": "reg_send", "7": "group_leader", "8": "exit2",
	"12": "send", "13": "exit", "16": "reg_send", "18": "exit2", "19": "monitor", "20": "demonitor", "21": "monitor_exit",
	"22": "send", "23": "send", "24": "exit", "25": "exit", "26": "exit2", "27": "exit2", "28": "monitor_exit",
	"29": "spawn", "30": "spawn", "31": "spawn_reply", "32": "spawn_reply", "33": "alias_send", "34": "alias_send", "35": "unlink_id", "36": "unlink_id_ack",
}

// erlSends are the control messages behind which a message stands.
var erlSends = map[string]bool{"send": true, "reg_send": true, "alias_send": true}

// erlRecords are the first fields of messages that are records, behind their names: those of
// Ra 2 (ra.hrl).
var erlRecords = map[string][]string{
	"append_entries_rpc":   {"term", "leader", "commit", "prev_index", "prev_term"},
	"append_entries_reply": {"term", "success", "next_index", "last_index", "last_term"},
	"request_vote_rpc":     {"term", "candidate", "last_index", "last_term"},
	"request_vote_result":  {"term", "granted"},
	"pre_vote_rpc":         {"version", "machine_version", "term", "", "candidate", "last_index", "last_term"},
	"pre_vote_result":      {"term", "", "granted"},
	"install_snapshot_rpc": {"term", "leader"},
	"heartbeat_rpc":        {"query_index", "term", "leader"},
	"heartbeat_reply":      {"query_index", "term"},
}

// control reads a control message, and the message behind it.
func (c *erlang) control(e *etf, control etfValue) Unit {
	if e.bad || control.kind != 't' || len(control.elems) == 0 {
		return Unit{Type: model.TypeUnknown}
	}
	op := erlOps[control.elems[0].text]
	if op == "" {
		op = "control"
	}
	u := Unit{Type: "erlang " + op, Fields: []model.Field{{Name: "op", Value: op}}}
	add := func(name, value string) {
		if value != "" {
			u.Fields = append(u.Fields, model.Field{Name: name, Value: value})
		}
	}
	to := ""
	if op == "reg_send" && len(control.elems) >= 4 {
		to = control.elems[3].text
		add("to", to)
	}
	if !erlSends[op] {
		return u
	}
	message := e.term(0)
	h, record := erlHead(message, 0)
	if erlWord(to) {
		u.Broad, u.Type = u.Type, u.Type+" "+to
	}
	if h != "" {
		u.Broad, u.Type = u.Type, u.Type+" "+h
	}
	add("head", h)
	for i, name := range erlRecords[h[strings.LastIndexByte(h, ' ')+1:]] {
		if name != "" && i+1 < len(record.elems) {
			add(name, erlText(record.elems[i+1]))
		}
	}
	return u
}

// erlText is a value as a field: of a process by name and node, the node.
func erlText(v etfValue) string {
	if v.kind == 't' && len(v.elems) == 2 {
		return v.elems[1].text
	}
	return v.text
}

// erlHead is what a message begins with, and the tuple in which that is.
func erlHead(m etfValue, depth int) (string, etfValue) {
	at := func(word string, i int) (string, etfValue) {
		if i >= len(m.elems) || depth > 3 {
			return word, m
		}
		h, in := erlHead(m.elems[i], depth+1)
		return strings.TrimSuffix(word+" "+h, " "), in
	}
	switch m.kind {
	case 'a':
		return erlAtom(m.text), m
	case 't':
		if len(m.elems) == 0 {
			return "", m
		}
		switch first := m.elems[0]; {
		case first.kind == 'a' && first.text == "$gen_call":
			return at("call", 2)
		case first.kind == 'a' && first.text == "$gen_cast":
			return at("cast", 1)
		case first.kind == 'a':
			return erlAtom(first.text), m
		case first.kind == 'r' || first.kind == 'l':
			return at("reply", 1) // {[alias | Reference], Reply}
		case first.kind == 'p' || first.kind == 't':
			if h, in := at("", 1); h != "" {
				return strings.TrimPrefix(h, " "), in
			}
		}
	}
	return "", m
}

// erlAtom is an atom as a word of a type; "" if it is data.
func erlAtom(a string) string {
	a = strings.TrimPrefix(a, "$")
	if !erlWord(a) {
		return ""
	}
	return a
}

// erlWord says whether an atom looks like a name that a program has: not one of a node, a
// queue or a process that was made up.
func erlWord(a string) bool {
	if a == "" || len(a) > maxWord || !isLetter(a[0]) {
		return false
	}
	for i := 1; i < len(a); i++ {
		if c := a[i]; !isLetter(c) && c != '_' {
			return false
		}
	}
	return true
}
