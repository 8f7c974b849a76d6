package scripts

import (
	"netsplit/campaign/script"
)

// The two listings of the NEAT paper (OSDI'18 §7.1), line for line, comments
// too. Names are those of the paper; its tests are static methods on fields of a
// class, these are methods on the fields of a struct. TestListingsAreNoLonger
// counts the lines, and TestListings plays both.
//
// Listing 2 of the paper ends with assertEquals, though its text says that the
// test fails if the two sides obtain the same value.

type neat struct {
	*script.Script
	s1, s2           script.Host
	client1, client2 client
	obj1, v1         string
	obj2, v2         string
	q1, msg1, msg2   string
}

// Listing 1: an Elasticsearch test for data loss.
func (s neat) testDataLoss() {
	side1 := s.Hosts(s.s1, s.client1.Host)
	// other servers and clients in one group
	side2 := s.Hosts(s.s2, s.client2.Host)
	// create a partial partition. s3 can reach
	// all nodes
	netPart := s.Partial(side1, side2)
	s.Sleep(s.Period("failover"))
	// write to both sides of the partition
	s.True(s.client1.write(s.obj1, s.v1))
	s.True(s.client2.write(s.obj2, s.v2))
	s.Heal(netPart)
	// verify the two objects
	s.Equal(s.client2.read(s.obj1), s.v1)
	s.Equal(s.client2.read(s.obj2), s.v2)
}

// Listing 2: an ActiveMQ test for a double dequeue failure.
func (s neat) testDoubleDequeue() {
	s.True(s.client1.send(s.q1, s.msg1))
	s.True(s.client1.send(s.q1, s.msg2))
	// get the master node
	master := s.Role("master")
	minority := s.Hosts(master, s.client1.Host)
	majority := s.Rest(minority)
	s.Complete(minority, majority)
	// dequeue at both sides of the partition
	minMsg := s.client1.receive(s.q1)
	s.Sleep(s.Period("failover"))
	majMsg := s.client2.receive(s.q1)
	s.NotEqual(minMsg, majMsg)
}

// client is what NEAT has the tester write once: the client interface of the
// system. This one is that of Redis, whose lists are its queues.
type client struct {
	*script.Client
	s *script.Script
	// stays is the server that it is connected to and stays with, as a pool of
	// connections does; without one it asks who is master on its side.
	stays script.Host
	side  []script.Host
}

func (c client) server() script.Host {
	if c.stays != "" {
		return c.stays
	}
	return c.s.AwaitRole(5*c.s.Period("failover"), "master", c.side...)
}

func (c client) write(obj, v string) bool { return c.Do("set", string(c.server()), obj, v).OK() }

// read asks the master that was elected: until the old one is demoted, it would
// answer for itself.
func (c client) read(obj string) string {
	elected := c.s.AwaitRole(4*c.s.Period("demotion"), "master", "n2", "n3")
	return c.Do("get", string(elected), obj).Value
}

func (c client) send(q, msg string) bool { return c.Do("push", string(c.server()), q, msg).OK() }

func (c client) receive(q string) string { return c.Do("pop", string(c.server()), q).Value }
