package model

import (
	"slices"
	"testing"
)

func aPoint() Point {
	return Point{Side: SideSend, Node: "n2", Peer: "n1", Type: "hdfs ack", Port: 50010, After: "hdfs packet", Nth: 1}
}

// An id is stored in records and told to users: it must stay what it is.
func TestFaultIDIsStable(t *testing.T) {
	f := PointFault{Point: aPoint(), Kind: PointCrash, Place: PlaceBefore}
	if got, want := f.ID(PointKeys()), FaultID("f-a9c3c07d4e"); got != want {
		t.Errorf("the id of %s is %s, it was %s", f, got, want)
	}
}

func TestFaultIDDependsOnItsKeysAlone(t *testing.T) {
	all := PointKeys()
	turned := slices.Clone(all)
	slices.Reverse(turned)
	base := PointFault{Point: aPoint(), Kind: PointCrash, Place: PlaceBefore}
	if base.ID(all) != base.ID(turned) {
		t.Error("the order of the keys changes the id")
	}
	for k, change := range map[PointKey]func(*Point){
		KeySide: func(p *Point) { p.Side = SideReceive }, KeyNode: func(p *Point) { p.Node = "n3" },
		KeyPeer: func(p *Point) { p.Peer = "n3" }, KeyType: func(p *Point) { p.Type = "hdfs packet" },
		KeyPort: func(p *Point) { p.Port = 1 }, KeyAfter: func(p *Point) { p.After = "" },
		KeyNth: func(p *Point) { p.Nth = 2 }, KeyStage: func(p *Point) { p.Stage = "setup" },
	} {
		other := base
		change(&other.Point)
		if other.ID(all) == base.ID(all) {
			t.Errorf("another %s has the same id", k)
		}
		without := slices.DeleteFunc(slices.Clone(all), func(l PointKey) bool { return l == k })
		if other.ID(without) != base.ID(without) {
			t.Errorf("%s is no key, and changes the id", k)
		}
	}
	for _, other := range []PointFault{{base.Point, PointIsolate, PlaceBefore}, {base.Point, PointCrash, PlaceAfter}} {
		if other.ID(all) == base.ID(all) {
			t.Errorf("%s has the id of %s", other, base)
		}
	}
}

// Values must not run into one another: a type that ends as the next key begins is
// another type.
func TestIdentityKeepsValuesApart(t *testing.T) {
	a, b := Point{Type: "x;port=1:0", Nth: 1}, Point{Type: "x", Nth: 1}
	if a.Identity(PointKeys()) == b.Identity(PointKeys()) {
		t.Errorf("%s and %s are one", a, b)
	}
}

func TestNthIsBounded(t *testing.T) {
	a, b := aPoint(), aPoint()
	a.Nth, b.Nth = PointMore, PointMore+7
	if a.Identity(PointKeys()) != b.Identity(PointKeys()) {
		t.Error("the third and the tenth are told apart")
	}
}

func TestPointOnOneLine(t *testing.T) {
	p := aPoint()
	for want, p := range map[string]Point{
		`send n2>n1 "hdfs ack" :50010 after "hdfs packet", number 1`: p,
		`receive n1>n2 "hdfs ack" in setup, number more`:             {Side: SideReceive, Node: "n2", Peer: "n1", Type: "hdfs ack", Stage: "setup", Nth: 3},
		`file n2 "rename blk_*", number 1`:                           {Side: SideFile, Node: "n2", Type: "rename blk_*", Nth: 1},
		`send "hdfs ack"`:                                            {Side: SideSend, Type: "hdfs ack"},
	} {
		if got := p.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
