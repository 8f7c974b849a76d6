// Package admin is what the workloads of the Cassandra targets share: the
// operation history, and the administrator at one node, who sees the ring as
// that node does and may take it out, through JMX over HTTP (Jolokia).
package admin
