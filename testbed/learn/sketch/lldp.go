package sketch

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"netsplit/model"
)

// Source is the sender of our LLDP frames: a locally administered address that
// is nobody's.
var Source = [6]byte{0x02, 0x6e, 0x73, 0x6c, 0x64, 0x70}

// nearest is the group that no bridge forwards (IEEE 802.1AB-2016 table 7-1).
var nearest = []byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// lifetime is how long others remember us, in seconds.
const lifetime = 10

// Probe is the LLDP frame that is to leave by a port: chassis and port id of
// subtype "local", the former with the mark of this sketch, so that frames of
// another one make no links.
func (s *Sketch) Probe(at At) []byte {
	tlv := func(b []byte, kind uint16, value ...byte) []byte {
		return append(binary.BigEndian.AppendUint16(b, kind<<9|uint16(len(value))), value...)
	}
	const local = 7
	b := append(append(append([]byte{}, nearest...), Source[:]...), typeLLDP>>8, typeLLDP&0xff)
	b = tlv(b, 1, append([]byte{local}, fmt.Sprintf("netsplit %s %s", s.mark, at.Datapath)...)...)
	b = tlv(b, 2, append([]byte{local}, strconv.FormatUint(uint64(at.Port), 10)...)...)
	b = tlv(b, 3, 0, lifetime)
	b = tlv(b, 5, []byte("netsplit")...)
	return append(tlv(b, 0), make([]byte, max(0, 60-len(b)-2))...)
}

// lldp reads an LLDP frame: the port that ours left by, or who else speaks.
func (s *Sketch) lldp(src [6]byte, body []byte) (from At, other string) {
	p := gopacket.NewPacket(body, layers.LayerTypeLinkLayerDiscovery, gopacket.Default)
	l, ok := p.Layer(layers.LayerTypeLinkLayerDiscovery).(*layers.LinkLayerDiscovery)
	if !ok {
		return from, fmt.Sprintf("something that speaks LLDP badly, as %s", mac(src))
	}
	words := strings.Fields(string(l.ChassisID.ID))
	if src == Source && len(words) == 3 && words[0] == "netsplit" && words[1] == s.mark {
		id, err := model.ParseDatapathID(words[2])
		port, perr := strconv.ParseUint(string(l.PortID.ID), 10, 32)
		if err == nil && perr == nil && id != 0 && port > 0 && port <= maxPort { // no file can name such a place, and we have sent from none
			return At{Datapath: id, Port: uint32(port)}, ""
		}
	}
	name := ""
	if info, ok := p.Layer(layers.LayerTypeLinkLayerDiscoveryInfo).(*layers.LinkLayerDiscoveryInfo); ok {
		name = printable([]byte(info.SysName))
	}
	if name == "" && l.ChassisID.Subtype != layers.LLDPChassisIDSubTypeMACAddr {
		name = printable(l.ChassisID.ID)
	}
	port := printable(l.PortID.ID)
	if l.PortID.Subtype == layers.LLDPPortIDSubtypeMACAddr && len(l.PortID.ID) == 6 {
		port = mac([6]byte(l.PortID.ID))
	}
	return from, strings.TrimSpace(fmt.Sprintf("%s, which says by LLDP that it is %q, its port %q", mac(src), name, port))
}

func mac(m [6]byte) string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// printable is what a comment of one line can hold of a text.
func printable(b []byte) string {
	const most = 40
	out := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, strings.TrimSpace(string(b)))
	return out[:min(len(out), most)]
}
